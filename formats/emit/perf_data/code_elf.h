/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF file of a code image: a shared object for x86-64 with one executable segment, which begins with the file, and
 * a build ID.
 */
#ifndef FORMATS_EMIT_PERF_DATA_CODE_ELF_H
#define FORMATS_EMIT_PERF_DATA_CODE_ELF_H

#include <stdint.h>
#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/sha1.h"
#include "formats/emit/perf_data/code_dwarf.h"

enum {
    CODE_ELF_TEXT_START = 0x200, /* address and file offset of .text */
};

struct code_elf {
    struct buf text;
    struct buf symbols, strings; /* .symtab and .strtab, both by code_elf_symbol() */
    struct code_dwarf dwarf;
    uint8_t build_id[SHA1_BYTES];
};

void code_elf_deinit(struct code_elf *elf);
/* Adds a symbol whose name is at `name` of `strings`. The first call adds the null symbol, too. */
void code_elf_symbol(struct code_elf *elf, uint32_t name, uint64_t start, uint64_t end);
/* Makes the build ID: a hash of all sections, when they are complete. */
struct error *code_elf_identify(struct code_elf *elf);
/* Writes the file from start to end. */
struct error *code_elf_write(const struct code_elf *elf, FILE *out);

#endif
