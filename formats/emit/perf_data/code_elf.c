/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the headers, then each section at its place, then the section headers. Only the note and .text are mapped;
 * their addresses are their offsets in the file, since perf looks symbols up by offset, libdw by address.
 */
#include "formats/emit/perf_data/code_elf.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
    NOTE_START = 0x100, /* behind the program headers */
    PAGE_BYTES = 0x1000,
    PART_COUNT = 11, /* sections, without the null section */
    TEXT_INDEX = 2, STRTAB_INDEX = 4, SHSTRTAB_INDEX = 11, /* in the table of sections */
};

struct note {
    Elf64_Nhdr header;
    char name[4];
    uint8_t id[SHA1_BYTES];
};

struct part {
    const char *name;
    Elf64_Shdr header; /* its name, offset and size are filled in later */
    const void *data;
    size_t len_bytes;
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
    const Elf64_Sym symbol = {.st_name = name,
                              .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                              .st_shndx = TEXT_INDEX,
                              .st_value = start,
                              .st_size = end - start};

    if (!elf->symbols.len_bytes)
        buf_put(&elf->symbols, &(Elf64_Sym){0}, sizeof(Elf64_Sym));
    buf_put(&elf->symbols, &symbol, sizeof symbol);
}

static struct part part_of(const char *name, const struct buf *content, Elf64_Shdr header)
{
    return (struct part){name, header, content->data, content->len_bytes};
}

static struct part debug_part(const char *name, const struct buf *content)
{
    return part_of(name, content, (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_addralign = 1});
}

/* In the order of the file. `names` gets the content of .shstrtab. */
static void make_parts(const struct code_elf *elf, const struct note *note, struct buf *names,
                       struct part parts[static PART_COUNT])
{
    const struct buf *symbols = &elf->symbols;
    uint64_t offset = 0;

    parts[0] = (struct part){".note.gnu.build-id",
                             {.sh_type = SHT_NOTE, .sh_flags = SHF_ALLOC, .sh_addr = NOTE_START, .sh_addralign = 4},
                             note, sizeof *note};
    parts[1] = part_of(".text", &elf->text,
                       (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                    .sh_addr = CODE_ELF_TEXT_START, .sh_addralign = 16});
    parts[2] = part_of(".symtab", symbols,
                       (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_addralign = 8, .sh_entsize = sizeof(Elf64_Sym),
                                    .sh_link = STRTAB_INDEX,
                                    .sh_info = (uint32_t)(symbols->len_bytes / sizeof(Elf64_Sym))}); /* all are local */
    parts[3] = part_of(".strtab", &elf->strings, (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1});
    parts[4] = debug_part(".debug_abbrev", &elf->dwarf.abbrev);
    parts[5] = debug_part(".debug_info", &elf->dwarf.info);
    parts[6] = debug_part(".debug_line", &elf->dwarf.line);
    parts[7] = debug_part(".debug_aranges", &elf->dwarf.aranges);
    parts[8] = debug_part(".debug_ranges", &elf->dwarf.ranges);
    parts[9] = debug_part(".debug_str", &elf->dwarf.str);
    parts[9].header.sh_flags = SHF_MERGE | SHF_STRINGS;
    parts[9].header.sh_entsize = 1;
    parts[10] = part_of(".shstrtab", names, (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_addralign = 1});
    buf_put_u8(names, 0);
    for (int i = 0; i < PART_COUNT; i++) {
        parts[i].header.sh_name = (uint32_t)names->len_bytes;
        buf_put(names, parts[i].name, strlen(parts[i].name) + 1);
    }
    parts[10].data = names->data;
    parts[10].len_bytes = names->len_bytes;
    for (int i = 0; i < PART_COUNT; i++) {
        Elf64_Shdr *h = &parts[i].header;
        offset = h->sh_addr ? h->sh_addr : (offset + h->sh_addralign - 1) & ~(h->sh_addralign - 1);
        h->sh_offset = offset;
        offset += h->sh_size = parts[i].len_bytes;
    }
}

/* What makes an image another one; not the build ID itself. */
static void hash_parts(const struct part *parts, uint8_t hash[static SHA1_BYTES])
{
    struct sha1 sha;

    sha1_init(&sha);
    for (int i = 1; i < PART_COUNT; i++) {
        sha1_add(&sha, &parts[i].header, sizeof parts[i].header);
        sha1_add(&sha, parts[i].data, parts[i].len_bytes);
    }
    sha1_end(&sha, hash);
}

/* Zeros up to the offset `to` of the file. */
static void pad(FILE *out, uint64_t *at, uint64_t to)
{
    for (; *at < to; ++*at)
        putc(0, out);
}

static void put(FILE *out, uint64_t *at, const void *data, size_t len_bytes)
{
    if (len_bytes)
        fwrite(data, len_bytes, 1, out);
    *at += len_bytes;
}

static void put_headers(FILE *out, uint64_t *at, uint64_t text_end, uint64_t sections_offset)
{
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof(Elf64_Ehdr),
        .e_shoff = sections_offset,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 2,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = PART_COUNT + 1,
        .e_shstrndx = SHSTRTAB_INDEX,
    };
    const Elf64_Phdr segments[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = text_end, .p_memsz = text_end, .p_align = PAGE_BYTES},
        {.p_type = PT_NOTE, .p_flags = PF_R, .p_offset = NOTE_START, .p_vaddr = NOTE_START, .p_paddr = NOTE_START,
         .p_filesz = sizeof(struct note), .p_memsz = sizeof(struct note), .p_align = 4},
    };

    put(out, at, &header, sizeof header);
    put(out, at, segments, sizeof segments);
}

struct error *code_elf_identify(struct code_elf *elf)
{
    const struct note note = {0};
    struct part parts[PART_COUNT];
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
    struct note note = {.header = {.n_namesz = 4, .n_descsz = SHA1_BYTES, .n_type = NT_GNU_BUILD_ID}, .name = "GNU"};
    struct part parts[PART_COUNT];
    struct buf names = {0};
    uint64_t at = 0;

    memcpy(note.id, elf->build_id, SHA1_BYTES);
    make_parts(elf, &note, &names, parts);
    if (names.bad) {
        buf_deinit(&names);
        return error_no_memory();
    }
    const struct part *last = &parts[PART_COUNT - 1];
    uint64_t sections_offset = (last->header.sh_offset + last->len_bytes + 7) & ~UINT64_C(7);
    put_headers(out, &at, CODE_ELF_TEXT_START + elf->text.len_bytes, sections_offset);
    for (int i = 0; i < PART_COUNT; i++) {
        pad(out, &at, parts[i].header.sh_offset);
        put(out, &at, parts[i].data, parts[i].len_bytes);
    }
    pad(out, &at, sections_offset);
    put(out, &at, &(Elf64_Shdr){0}, sizeof(Elf64_Shdr));
    for (int i = 0; i < PART_COUNT; i++)
        put(out, &at, &parts[i].header, sizeof parts[i].header);
    buf_deinit(&names);
    return ferror(out) ? error_os(errno, "cannot write the code image") : NULL;
}
