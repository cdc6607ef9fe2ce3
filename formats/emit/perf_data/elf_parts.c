/* SPDX-License-Identifier: Apache-2.0 */
/* The file has the ELF header, the headers of segments, the sections, and their headers. */
#include "formats/emit/perf_data/elf_parts.h"

#include <errno.h>
#include <string.h>

void elf_note_set(struct elf_note *note, const uint8_t id[static SHA1_BYTES])
{
    *note = (struct elf_note){.header = {.n_namesz = 4, .n_descsz = SHA1_BYTES, .n_type = NT_GNU_BUILD_ID}, .name = "GNU"};
    memcpy(note->id, id, SHA1_BYTES);
}

struct elf_part elf_part_of(const char *name, const struct buf *content, Elf64_Shdr header)
{
    return (struct elf_part){name, header, content->data, content->len_bytes};
}

struct elf_part elf_part_of_symbols(const struct buf *symbols, uint32_t strings)
{
    const Elf64_Shdr header = {.sh_type = SHT_SYMTAB, .sh_addralign = 8, .sh_entsize = sizeof(Elf64_Sym), .sh_link = strings,
                               .sh_info = (uint32_t)(symbols->len_bytes / sizeof(Elf64_Sym))};

    return elf_part_of(".symtab", symbols, header);
}

void elf_symbol_add(struct buf *symbols, uint32_t name, uint16_t section, uint64_t start, uint64_t end)
{
    const Elf64_Sym symbol = {.st_name = name,
                              .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                              .st_shndx = section,
                              .st_value = start,
                              .st_size = end - start};

    if (!symbols->len_bytes)
        buf_put(symbols, &(Elf64_Sym){0}, sizeof(Elf64_Sym));
    buf_put(symbols, &symbol, sizeof symbol);
}

void elf_parts_place(struct elf_part *parts, int count, uint64_t start, struct buf *names)
{
    struct elf_part *last = &parts[count - 1];
    uint64_t offset = start;

    buf_put_u8(names, 0);
    *last = (struct elf_part){".shstrtab", {.sh_type = SHT_STRTAB, .sh_addralign = 1}, NULL, 0};
    for (int i = 0; i < count; i++) {
        parts[i].header.sh_name = (uint32_t)names->len_bytes;
        buf_put(names, parts[i].name, strlen(parts[i].name) + 1);
    }
    last->data = names->data;
    last->len_bytes = names->len_bytes;
    for (int i = 0; i < count; i++) {
        Elf64_Shdr *h = &parts[i].header;
        bool is_in_file = h->sh_type != SHT_NOBITS;
        offset = h->sh_addr && is_in_file ? h->sh_addr : (offset + h->sh_addralign - 1) & ~(h->sh_addralign - 1);
        h->sh_offset = offset;
        if (is_in_file)
            offset += h->sh_size = parts[i].len_bytes;
    }
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

struct error *elf_parts_write(const struct elf_part *parts, int count, uint16_t type, const Elf64_Phdr *segments,
                              int segment_count, FILE *out)
{
    const struct elf_part *last = &parts[count - 1];
    uint64_t sections_offset = (last->header.sh_offset + last->len_bytes + 7) & ~UINT64_C(7), at = 0;
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = type,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_phoff = segment_count ? sizeof(Elf64_Ehdr) : 0,
        .e_shoff = sections_offset,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = (uint16_t)segment_count,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (uint16_t)(count + 1), /* with the null section */
        .e_shstrndx = (uint16_t)count,
    };

    put(out, &at, &header, sizeof header);
    put(out, &at, segments, (size_t)segment_count * sizeof *segments);
    for (int i = 0; i < count; i++) {
        if (parts[i].header.sh_type == SHT_NOBITS)
            continue;
        pad(out, &at, parts[i].header.sh_offset);
        put(out, &at, parts[i].data, parts[i].len_bytes);
    }
    pad(out, &at, sections_offset);
    put(out, &at, &(Elf64_Shdr){0}, sizeof(Elf64_Shdr));
    for (int i = 0; i < count; i++)
        put(out, &at, &parts[i].header, sizeof parts[i].header);
    return ferror(out) ? error_os(errno, "cannot write the names of functions") : NULL;
}
