/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ELF file without its code and data: what unwinding and naming read stays, byte for byte and in its place, so that
 * file offsets, program headers and the build ID remain those of the whole file. What is left out reads as zeros,
 * which cost nothing in a compressed archive, and its sections say SHT_NOBITS.
 */
#ifndef FORMATS_ELF_STRIP_H
#define FORMATS_ELF_STRIP_H

#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

/* [start, end) of the file. */
struct elf_extent {
    uint64_t start, end;
};
struct elf_extents {
    VEC(struct elf_extent) list; /* sorted, not overlapping */
};

/*
 * What can be left out of an ELF file in private, writable memory; changes the types of those sections in it, and
 * nothing else. Without section headers, and of what is no 64-bit ELF file, nothing is left out. The caller
 * frees `out->list` with VEC_DEINIT, also after an error.
 */
struct error *elf_strip(uint8_t *image, uint64_t len_bytes, struct elf_extents *out);

#endif
