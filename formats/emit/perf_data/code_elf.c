/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only the note and .text are mapped; their addresses are their offsets in the file, since perf looks symbols up by
 * offset, libdw by address.
 */
#include "formats/emit/perf_data/code_elf.h"

#include "formats/emit/perf_data/elf_parts.h"

enum {
    NOTE_START = 0x100, /* behind the program headers */
    PAGE_BYTES = 0x1000,
    PART_COUNT = 11, /* sections, without the null section */
    TEXT_INDEX = 2, STRTAB_INDEX = 4, /* in the table of sections */
};

void code_elf_deinit(struct code_elf *elf)
{
    buf_deinit(&elf->text);
    buf_deinit(&elf->symbols);
    buf_deinit(&elf->strings);
    code_dwarf_deinit(&elf->dwarf);
}

void code_elf_symbol(struct code_elf *elf, uint32_t name, uint64_t start, uint64_t end)
{
    elf_symbol_add(&elf->symbols, name, TEXT_INDEX, start, end);
}

static struct elf_part debug_part(const char *name, const struct buf *content)
{
    return elf_part_of(name, content, (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_addralign = 1});
}

/* In the order of the file. `names` gets the content of the last one. */
static void make_parts(const struct code_elf *elf, const struct elf_note *note, struct buf *names,
                       struct elf_part parts[static PART_COUNT])
{
    parts[0] = (struct elf_part){".note.gnu.build-id",
                                 {.sh_type = SHT_NOTE, .sh_flags = SHF_ALLOC, .sh_addr = NOTE_START, .sh_addralign = 4},
                                 note, sizeof *note};
    parts[1] = elf_part_of(".text", &elf->text,
                           (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                        .sh_addr = CODE_ELF_TEXT_START, .sh_addralign = 16});
    parts[2] = elf_part_of_symbols(&elf->symbols, STRTAB_INDEX);
    parts[3] = elf_part_of(".strtab", &elf->strings, (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1});
    parts[4] = debug_part(".debug_abbrev", &elf->dwarf.abbrev);
    parts[5] = debug_part(".debug_info", &elf->dwarf.info);
    parts[6] = debug_part(".debug_line", &elf->dwarf.line);
    parts[7] = debug_part(".debug_aranges", &elf->dwarf.aranges);
    parts[8] = debug_part(".debug_ranges", &elf->dwarf.ranges);
    parts[9] = debug_part(".debug_str", &elf->dwarf.str);
    parts[9].header.sh_flags = SHF_MERGE | SHF_STRINGS;
    parts[9].header.sh_entsize = 1;
    elf_parts_place(parts, PART_COUNT, NOTE_START, names);
}

/* What makes an image another one; not the build ID itself. */
static void hash_parts(const struct elf_part *parts, uint8_t hash[static SHA1_BYTES])
{
    struct sha1 sha;

    sha1_init(&sha);
    for (int i = 1; i < PART_COUNT; i++) {
        sha1_add(&sha, &parts[i].header, sizeof parts[i].header);
        sha1_add(&sha, parts[i].data, parts[i].len_bytes);
    }
    sha1_end(&sha, hash);
}

struct error *code_elf_identify(struct code_elf *elf)
{
    const struct elf_note note = {0};
    struct elf_part parts[PART_COUNT];
    struct buf names = {0};
    bool ok = !elf->text.bad && !elf->symbols.bad && !elf->strings.bad;

    make_parts(elf, &note, &names, parts);
    ok = ok && !names.bad;
    if (ok)
        hash_parts(parts, elf->build_id);
    buf_deinit(&names);
    return ok ? NULL : error_no_memory();
}

struct error *code_elf_write(const struct code_elf *elf, FILE *out)
{
    const uint64_t text_end = CODE_ELF_TEXT_START + elf->text.len_bytes;
    const Elf64_Phdr segments[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = text_end, .p_memsz = text_end, .p_align = PAGE_BYTES},
        {.p_type = PT_NOTE, .p_flags = PF_R, .p_offset = NOTE_START, .p_vaddr = NOTE_START, .p_paddr = NOTE_START,
         .p_filesz = sizeof(struct elf_note), .p_memsz = sizeof(struct elf_note), .p_align = 4},
    };
    struct elf_part parts[PART_COUNT];
    struct elf_note note;
    struct buf names = {0};

    elf_note_set(&note, elf->build_id);
    make_parts(elf, &note, &names, parts);
    struct error *err = names.bad ? error_no_memory() : elf_parts_write(parts, PART_COUNT, ET_DYN, segments, 2, out);
    buf_deinit(&names);
    return err;
}
