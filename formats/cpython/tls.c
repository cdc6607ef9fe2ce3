/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread-local variables, where they lie below the thread pointer (variant II of the System V TLS ABI).
 *
 * A program's own block of them ends at the thread pointer, so the linker knows their offsets. A
 * library's block lies where the dynamic linker puts it, which it notes in the library's GOT. The
 * variable's symbol is local and missing in a stripped file; but the code of a function that returns
 * the variable shows how it gets there, and by which entry of the GOT.
 */
#include "formats/cpython/tls.h"

#include "formats/elf/machine.h"

#define RELOCS_MAX 4000000
#define FUNCTION_BYTES 64 /* looked at, of a function that returns a variable */

static uint64_t tls_block_bytes(const struct elf_file *f)
{
    uint64_t align = f->tls.p_align ? f->tls.p_align : 1;

    if (align > 1u << 20 || f->tls.p_memsz > 1u << 30)
        return 0;
    return (f->tls.p_memsz + align - 1) / align * align;
}

static void set_local_exec(const struct elf_file *f, int64_t offset, struct py_tls *tls)
{
    if (offset < 0 && offset >= -(int64_t)tls_block_bytes(f))
        *tls = (struct py_tls){.kind = PY_TLS_LOCAL_EXEC, .offset = offset};
}

/*
 * The offset that the dynamic linker stores in the second half of a tls_index at `slot`: given by a
 * relocation if it depends on a symbol, else found in the file itself.
 */
static bool module_offset_at(const struct elf_file *f, const struct elf_dynamic *d, const struct machine *machine,
                             uint64_t slot, uint64_t *out)
{
    Elf64_Rela rela[256];
    uint64_t offset, count = d->relocs_bytes / sizeof *rela;
    bool has_module = false, has_offset = false;

    if (!d->relocs || count > RELOCS_MAX || elf_file_bytes_at(f, d->relocs, &offset) < d->relocs_bytes ||
        !elf_file_read_vaddr(f, slot + 8, out, sizeof *out))
        return false;
    while (count) {
        size_t n = count < 256 ? (size_t)count : 256;
        if (!elf_file_read_at(f, offset, rela, n * sizeof *rela))
            return false;
        for (size_t i = 0; i < n; i++) {
            uint32_t type = ELF64_R_TYPE(rela[i].r_info);
            uint64_t index = ELF64_R_SYM(rela[i].r_info);
            Elf64_Sym sym = {0};
            if (rela[i].r_offset == slot && type == machine->relocation_tls_module)
                has_module = true;
            if (rela[i].r_offset != slot + 8 || type != machine->relocation_tls_offset || has_offset)
                continue;
            if (index && !elf_file_read_vaddr(f, d->symbols + index * sizeof sym, &sym, sizeof sym))
                return false;
            has_offset = true;
            *out = sym.st_value + (uint64_t)rela[i].r_addend;
        }
        offset += n * sizeof *rela;
        count -= n;
    }
    return has_module;
}

/* From the code of a function that does little but load the variable. */
static void decode_tls(const struct elf_file *f, const struct elf_dynamic *d, const struct machine *machine,
                       const Elf64_Sym *function, struct py_tls *tls)
{
    uint8_t code[FUNCTION_BYTES + MACHINE_CODE_SLACK] = {0};
    size_t len = function->st_size && function->st_size < FUNCTION_BYTES ? function->st_size : FUNCTION_BYTES;
    uint64_t offset;

    if (!elf_file_read_vaddr(f, function->st_value, code, len))
        return;
    struct machine_tls found = machine->tls_at(code, len, function->st_value);
    switch (found.model) {
    case MACHINE_TLS_UNKNOWN:
        break;
    case MACHINE_TLS_OFFSET:
        set_local_exec(f, found.offset, tls);
        break;
    case MACHINE_TLS_SLOT:
        *tls = (struct py_tls){.kind = PY_TLS_SLOT, .slot_vaddr = found.slot};
        break;
    case MACHINE_TLS_DESCRIPTOR:
        *tls = (struct py_tls){.kind = PY_TLS_DESCRIPTOR, .slot_vaddr = found.slot};
        break;
    case MACHINE_TLS_MODULE:
        if (!module_offset_at(f, d, machine, found.slot, &offset))
            break;
        offset += (uint64_t)found.offset;
        if (offset < f->tls.p_memsz)
            *tls = (struct py_tls){.kind = PY_TLS_MODULE, .offset = (int64_t)offset, .module_id_vaddr = found.slot};
        break;
    }
}

void py_tls_find(const struct elf_file *f, const struct elf_dynamic *d, const Elf64_Sym *getters, uint32_t getter_count,
                 const Elf64_Sym *variable, struct py_tls *tls)
{
    const struct machine *machine = machine_by_elf(f->header.e_machine);

    *tls = (struct py_tls){0};
    for (uint32_t i = 0; machine && i < getter_count && tls->kind == PY_TLS_NONE; i++) {
        if (getters[i].st_shndx != SHN_UNDEF)
            decode_tls(f, d, machine, &getters[i], tls);
    }
    if (variable->st_shndx == SHN_UNDEF || variable->st_value >= f->tls.p_memsz)
        return;
    int64_t value = (int64_t)variable->st_value;
    if (tls->kind == PY_TLS_MODULE)
        tls->offset = value;
    else if (tls->kind != PY_TLS_NONE)
        return;
    else if (f->is_executable)
        set_local_exec(f, value - (int64_t)tls_block_bytes(f), tls);
    else
        *tls = (struct py_tls){.kind = PY_TLS_MODULE, .offset = value};
}
