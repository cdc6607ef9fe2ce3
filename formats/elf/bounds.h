/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the work of reading an ELF file in proportion to its size. Without bounds a small file could cost much: its
 * headers may all point to the same bytes.
 */
#ifndef FORMATS_ELF_BOUNDS_H
#define FORMATS_ELF_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/* Takes `len_bytes` from a budget; false when less is left, and then takes nothing. */
static inline bool elf_take_budget(uint64_t *left, uint64_t len_bytes)
{
    if (len_bytes > *left)
        return false;
    *left -= len_bytes;
    return true;
}

#endif
