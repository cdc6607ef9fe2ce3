/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread-local variables on x86-64 (variant II of the System V TLS ABI).
 *
 * A program's own block of them ends at the thread pointer, at a distance that the linker knows. A
 * library's block lies where the dynamic linker put it, which then stands in the library's GOT. The
 * variable's symbol is local, so a stripped file has none; but a function that returns the variable
 * shows in its code which way is taken, and where in the GOT.
 */
#include "formats/cpython/tls.h"

#include <string.h>

#define RELOCS_MAX 4000000

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
 * The offset that the dynamic linker stores in the second half of a tls_index at `slot`: by a
 * relocation where it depends on a symbol, else it stands in the file.
 */
static bool module_offset_at(const struct elf_file *f, const struct elf_dynamic *d, uint64_t slot, uint64_t *out)
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
            if (rela[i].r_offset == slot && type == R_X86_64_DTPMOD64)
                has_module = true;
            if (rela[i].r_offset != slot + 8 || type != R_X86_64_DTPOFF64 || has_offset)
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

static int32_t imm32_at(const uint8_t *p)
{
    int32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

/*
 * Reads it off the code of a function that does little else than load the variable. What compilers and the
 * linker's relaxations make of it on x86-64 (System V TLS ABI): local exec, a fixed offset; initial exec, an
 * offset in a GOT slot; general and local dynamic, a tls_index in the GOT; TLS descriptors, two words there.
 */
static void decode_tls(const struct elf_file *f, const struct elf_dynamic *d, const Elf64_Sym *function, struct py_tls *tls)
{
    uint8_t code[64 + 16] = {0};
    size_t len = function->st_size && function->st_size < 64 ? function->st_size : 64;
    uint64_t base = function->st_value, offset;

    if (f->header.e_machine != EM_X86_64 || !elf_file_read_vaddr(f, base, code, len))
        return;
    for (size_t i = 0; i < len; i++) {
        const uint8_t *p = code + i;
        uint64_t next = base + i;
        /* mov reg, fs:imm32; of a fs:0 (the thread pointer) the addition follows. */
        if (p[0] == 0x64 && (p[1] & 0xfb) == 0x48 && p[2] == 0x8b && (p[3] & 0xc7) == 0x04 && p[4] == 0x25) {
            if (imm32_at(p + 5)) {
                set_local_exec(f, imm32_at(p + 5), tls);
                return;
            }
            const uint8_t *q = p + 9;
            if ((q[0] & 0xf8) == 0x48 && (q[1] == 0x8d || q[1] == 0x8b) && (q[2] & 0xc0) == 0x80 &&
                (q[2] & 7) != 4) { /* lea or mov reg, [reg + imm32] */
                set_local_exec(f, imm32_at(q + 3), tls);
                return;
            }
            if ((q[0] & 0xf8) == 0x48 && q[1] == 0x03 && (q[2] & 0xc7) == 0x05) { /* add reg, [rip + disp32] */
                *tls =
                    (struct py_tls){.kind = PY_TLS_SLOT, .slot_vaddr = next + 16 + (uint64_t)(int64_t)imm32_at(q + 3)};
                return;
            }
        }
        /* Where a descriptor was relaxed, a two-byte nop stands for the call. */
        bool then_loads = p[7] == 0x64 || (p[7] == 0x66 && p[8] == 0x90 && p[9] == 0x64);
        /* mov reg, imm32; mov reg, fs:[reg] */
        if (p[0] == 0x48 && p[1] == 0xc7 && (p[2] & 0xf8) == 0xc0 && then_loads) {
            set_local_exec(f, imm32_at(p + 3), tls);
            return;
        }
        /* mov reg, [rip + disp32]; mov reg, fs:[reg] */
        if ((p[0] & 0xfb) == 0x48 && p[1] == 0x8b && (p[2] & 0xc7) == 0x05 && then_loads) {
            *tls = (struct py_tls){.kind = PY_TLS_SLOT, .slot_vaddr = next + 7 + (uint64_t)(int64_t)imm32_at(p + 3)};
            return;
        }
        /* lea rax, [rip + disp32]; call [rax] */
        if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x05 && p[7] == 0xff && p[8] == 0x10) {
            *tls =
                (struct py_tls){.kind = PY_TLS_DESCRIPTOR, .slot_vaddr = next + 7 + (uint64_t)(int64_t)imm32_at(p + 3)};
            return;
        }
        /* lea rdi, [rip + disp32]; call __tls_get_addr */
        if (p[0] == 0x48 && p[1] == 0x8d && p[2] == 0x3d) {
            uint64_t slot = next + 7 + (uint64_t)(int64_t)imm32_at(p + 3);
            bool general = i && p[-1] == 0x66;
            if (!module_offset_at(f, d, slot, &offset))
                return;
            if (!general) { /* local dynamic: the module's block; the variable's offset in it follows the call */
                const uint8_t *q = p + 7;
                while (q < code + len &&
                       !(q[0] == 0x48 && q[1] == 0x8b && ((q[2] & 0xc7) == 0x80 || (q[2] & 0xc7) == 0x40)))
                    q++;
                if (q >= code + len)
                    return;
                offset += (q[2] & 0xc7) == 0x80 ? (uint64_t)(int64_t)imm32_at(q + 3) : (uint64_t)(int64_t)(int8_t)q[3];
            }
            if (offset < f->tls.p_memsz)
                *tls = (struct py_tls){.kind = PY_TLS_MODULE, .offset = (int64_t)offset, .module_id_vaddr = slot};
            return;
        }
    }
}

void py_tls_find(const struct elf_file *f, const struct elf_dynamic *d, const Elf64_Sym *getters, uint32_t getter_count,
                 const Elf64_Sym *variable, struct py_tls *tls)
{
    *tls = (struct py_tls){0};
    for (uint32_t i = 0; i < getter_count && tls->kind == PY_TLS_NONE; i++) {
        if (getters[i].st_shndx != SHN_UNDEF)
            decode_tls(f, d, &getters[i], tls);
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
