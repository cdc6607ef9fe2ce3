/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strips an ELF file of its code and data. What unwinding and naming read stays, byte for byte and in its place, so file
 * offsets, program headers and the build ID are those of the whole file. What is left out reads as zeros, which cost
 * nothing in a compressed archive, and its sections become SHT_NOBITS.
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
 * Lists what can be left out of `image`, an ELF file in private, writable memory, and changes the types of those sections
 * in it; the rest of the image stays as it is. Nothing can be left out of a file without section headers or one that is
 * not 64-bit ELF. The caller frees out->list with VEC_DEINIT, also after an error.
 */
struct error *elf_strip(uint8_t *image, uint64_t len_bytes, struct elf_extents *out);

#endif
