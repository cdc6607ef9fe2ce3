/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ELF file offers to the dynamic linker: found by way of PT_DYNAMIC, as the linker does, so that it is there in
 * a file without section headers too. A name is looked up through the hash table, in a handful of small reads; the Bloom
 * filter of a GNU one usually says with the first that it is not there.
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

/* All 0 where there is no dynamic section. */
void elf_dynamic_read(const struct elf_file *f, struct elf_dynamic *out);
/* A symbol that the file defines for others. At most 4096 candidates of one name's hash are looked at. */
bool elf_find_exported(const struct elf_file *f, const struct elf_dynamic *d, const char *name, Elf64_Sym *sym);

#endif
