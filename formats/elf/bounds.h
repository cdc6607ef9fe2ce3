/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeps the work of reading an ELF file in proportion to its size: its sections may overlap, and share what they
 * refer to, as often as there are headers.
 */
#ifndef FORMATS_ELF_BOUNDS_H
#define FORMATS_ELF_BOUNDS_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * As elf_strptr(), but a table that does not end with a NUL, as it must, names nothing: libelf would search such a one
 * for the end of every name. NULL: no name. It may be as long as the table: whoever reads all of many names needs a bound.
 */
static inline const char *elf_name(Elf *elf, size_t table, size_t at)
{
    const Elf_Data *data = elf_rawdata(elf_getscn(elf, table), NULL);
    const char *all = data ? data->d_buf : NULL;

    return all && data->d_size && !all[data->d_size - 1] ? elf_strptr(elf, table, at) : NULL;
}

/* Takes `len_bytes` from a budget; false when there is not so much left. */
static inline bool elf_take_budget(uint64_t *left, uint64_t len_bytes)
{
    if (len_bytes > *left)
        return false;
    *left -= len_bytes;
    return true;
}

#endif
