/* SPDX-License-Identifier: Apache-2.0 */
/* .text says where the kernel's code was, and has nothing in the file. */
#include "formats/emit/perf_data/kernel_elf.h"

#include "formats/emit/perf_data/elf_parts.h"

enum {
    PART_COUNT = 5,
    TEXT_INDEX = 1, STRTAB_INDEX = 4, /* in the table of sections, which begins with the null section */
};

void kernel_elf_deinit(struct kernel_elf *elf)
{
    buf_deinit(&elf->symbols);
    buf_deinit(&elf->strings);
}

void kernel_elf_symbol(struct kernel_elf *elf, const void *name, size_t len_bytes, uint64_t start, uint64_t end)
{
    if (!elf->strings.len_bytes)
        buf_put_u8(&elf->strings, 0);
    elf_symbol_add(&elf->symbols, (uint32_t)elf->strings.len_bytes, TEXT_INDEX, start, end);
    buf_put(&elf->strings, name, len_bytes);
    buf_put_u8(&elf->strings, 0);
}

struct error *kernel_elf_write(const struct kernel_elf *elf, uint64_t start, uint64_t end,
                               const uint8_t build_id[static SHA1_BYTES], FILE *out)
{
    struct elf_note note;
    struct buf names = {0};
    struct elf_part parts[PART_COUNT] = {
        {".text", {.sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR, .sh_addr = start, .sh_size = end - start,
                   .sh_addralign = 16}, NULL, 0},
        {".note.gnu.build-id", {.sh_type = SHT_NOTE, .sh_addralign = 4}, &note, sizeof note},
        elf_part_of_symbols(&elf->symbols, STRTAB_INDEX),
        elf_part_of(".strtab", &elf->strings, (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1}),
    };

    elf_note_set(&note, build_id);
    elf_parts_place(parts, PART_COUNT, sizeof(Elf64_Ehdr), &names);
    bool ok = !elf->symbols.bad && !elf->strings.bad && !names.bad;
    struct error *err = ok ? elf_parts_write(parts, PART_COUNT, ET_EXEC, NULL, 0, out) : error_no_memory();
    buf_deinit(&names);
    return err;
}
