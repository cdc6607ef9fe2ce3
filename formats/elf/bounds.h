/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the work of reading an ELF file in proportion to its size. Without bounds a small file could cost much: its
 * headers may all point to the same bytes.
 */
#ifndef FORMATS_ELF_BOUNDS_H
#define FORMATS_ELF_BOUNDS_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * As elf_strptr(), but NULL for a table that does not end with a NUL, as it must: libelf would search all of it for the
 * end of each name. A name may be as long as the table, so a caller that reads many names needs a bound.
 */
static inline const char *elf_name(Elf *elf, size_t table, size_t at)
{
    const Elf_Data *data = elf_rawdata(elf_getscn(elf, table), NULL);
    const char *all = data ? data->d_buf : NULL;

    return all && data->d_size && !all[data->d_size - 1] ? elf_strptr(elf, table, at) : NULL;
}

/* Takes `len_bytes` from a budget; false when less is left, and then takes nothing. */
static inline bool elf_take_budget(uint64_t *left, uint64_t len_bytes)
{
    if (len_bytes > *left)
        return false;
    *left -= len_bytes;
    return true;
}

#endif
