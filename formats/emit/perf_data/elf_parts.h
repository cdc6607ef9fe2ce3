/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file for x86-64 from its sections: gives them their places, and writes headers and contents. */
#ifndef FORMATS_EMIT_PERF_DATA_ELF_PARTS_H
#define FORMATS_EMIT_PERF_DATA_ELF_PARTS_H

#include <elf.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/sha1.h"

/* A section. Of the header, name, offset and size are filled in by elf_parts_place(); the size not of SHT_NOBITS. */
struct elf_part {
    const char *name;
    Elf64_Shdr header;
    const void *data; /* borrowed */
    size_t len_bytes;
};

/* The content of .note.gnu.build-id. */
struct elf_note {
    Elf64_Nhdr header;
    char name[4];
    uint8_t id[SHA1_BYTES];
};

void elf_note_set(struct elf_note *note, const uint8_t id[static SHA1_BYTES]);
struct elf_part elf_part_of(const char *name, const struct buf *content, Elf64_Shdr header);
/* .symtab, all of whose symbols are local; its names are in section number `strings`, as the file counts. */
struct elf_part elf_part_of_symbols(const struct buf *symbols, uint32_t strings);
/* Adds a function to .symtab: `name` is an offset in .strtab. The first call adds the null symbol, too. */
void elf_symbol_add(struct buf *symbols, uint32_t name, uint16_t section, uint64_t start, uint64_t end);
/*
 * Places the sections one behind the other, from `start` on; those that are loaded at their address. The last one becomes
 * .shstrtab, whose content `names` gets; it has to live as long as the parts.
 */
void elf_parts_place(struct elf_part *parts, int count, uint64_t start, struct buf *names);
/* Writes placed sections, with the headers, from start to end. The segments' headers have to end before the sections. */
struct error *elf_parts_write(const struct elf_part *parts, int count, uint16_t type, const Elf64_Phdr *segments,
                              int segment_count, FILE *out);

#endif
