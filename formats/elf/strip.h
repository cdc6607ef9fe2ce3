/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strips an ELF file of its code and data. What unwinding and naming read stays, byte for byte and in its place, so file
 * offsets, program headers and the build ID are those of the whole file. What is left out reads as zeros, which cost
 * nothing in a compressed archive, and its sections become SHT_NOBITS.
 */
#ifndef FORMATS_ELF_STRIP_H
#define FORMATS_ELF_STRIP_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "formats/elf/file.h"

/* [start, end) of the file. */
struct elf_extent {
    uint64_t start, end;
};
struct elf_extents {
    VEC(struct elf_extent) list; /* sorted, not overlapping */
};

/* What can be left out of a file, and where the types of those sections stand. */
struct elf_strip {
    struct elf_extents left_out;
    VEC(uint64_t) types; /* offsets in the file, sorted */
};

/*
 * Lists what can be left out of a file: nothing of one without section headers or one that is not 64-bit ELF. Of the
 * file's contents no more than a small piece is in memory at a time. The caller deinits *out, also after an error.
 */
struct error *elf_strip(const struct elf_file *f, struct elf_strip *out);
/* Changes `data`, a piece of the file that begins at `offset`: what is left out becomes zeros, and types SHT_NOBITS. */
void elf_strip_apply(const struct elf_strip *s, uint64_t offset, uint8_t *data, size_t len_bytes);
void elf_strip_deinit(struct elf_strip *s);

#endif
