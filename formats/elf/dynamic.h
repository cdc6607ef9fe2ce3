/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic section of an ELF file and the symbols that it exports. Found by way of PT_DYNAMIC, as the dynamic linker
 * does, so a file needs no section headers. A name is looked up through the hash table, in a handful of small reads; the
 * Bloom filter of DT_GNU_HASH usually says with the first that a name is not there.
 */
#ifndef FORMATS_ELF_DYNAMIC_H
#define FORMATS_ELF_DYNAMIC_H

#include "formats/elf/file.h"

/* Virtual addresses; 0: the file has none. */
struct elf_dynamic {
    uint64_t hash, gnu_hash, symbols;
    uint64_t strings, strings_bytes;
    uint64_t relocs, relocs_bytes; /* Elf64_Rela */
};

/* All 0 when the file has no dynamic section. */
void elf_dynamic_read(const struct elf_file *f, struct elf_dynamic *out);
/* Finds a symbol that the file exports; false: not found, or not among the first 4096 candidates of its hash. */
bool elf_find_exported(const struct elf_file *f, const struct elf_dynamic *d, const char *name, Elf64_Sym *sym);
/*
 * Counts the functions that the file exports, and those of them whose names `is` likes, among the first 16,384 symbols. Where
 * the symbols do not lie before their names, as linkers lay them out, there are none.
 */
void elf_count_exported(const struct elf_file *f, const struct elf_dynamic *d, bool (*is)(const char *name), uint32_t *all,
                        uint32_t *liked);

#endif
