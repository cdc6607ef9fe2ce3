/* SPDX-License-Identifier: Apache-2.0 */
/* What holds of every unwind table, whatever it was made of. */
#ifndef TESTS_FUZZ_CHECK_TABLE_H
#define TESTS_FUZZ_CHECK_TABLE_H

#include <stdlib.h>

#include "formats/elf/unwind_table.h"

static void check(bool good)
{
    if (!good)
        abort();
}

static void check_table(const struct unwind_table *t)
{
    for (uint32_t i = 0; i < t->row_count; i++) {
        const struct unwind_row *row = &t->rows[i];
        uint8_t type = UNWIND_TYPE(row->type);
        check(!i || t->rows[i - 1].pc < row->pc);
        check(type < UNWIND_TYPE_COUNT);
        check(type != UNWIND_WIDE || row->cfa8 < t->wide_count);
        check(type != UNWIND_OTHER || (row->cfa8 && row->cfa8 < UNWIND_OTHER_COUNT));
        struct unwind_row found = unwind_table_lookup(t, t->base_vaddr + row->pc);
        check(found.pc == row->pc);
        /* Up to where the next one starts. */
        uint64_t last = i + 1 < t->row_count ? t->rows[i + 1].pc - 1 : (uint64_t)row->pc + 1000;
        found = unwind_table_lookup(t, t->base_vaddr + last);
        check(found.pc == row->pc || (type == UNWIND_NONE && found.type == UNWIND_NONE));
    }
    check(!t->row_count || t->rows[t->row_count - 1].type == UNWIND_NONE);
    for (uint32_t i = 0; i < t->index_count; i++) {
        uint32_t low = UNWIND_PAGE_LOW(t->index[i]), high = UNWIND_PAGE_HIGH(t->index[i]);
        check(low <= high && high <= t->row_count && high - low <= 257);
    }
    for (uint32_t i = 0; i < t->wide_count; i++) {
        check(t->wide[i].cfa.kind == UNWIND_VALUE || t->wide[i].cfa.kind == UNWIND_MEMORY);
        check(t->wide[i].cfa.base <= 15);
        check(t->wide[i].ra.kind == UNWIND_VALUE || t->wide[i].ra.kind == UNWIND_MEMORY);
        check(t->wide[i].rbp.kind <= UNWIND_MEMORY && t->wide[i].rbx.kind <= UNWIND_MEMORY);
    }
}

#endif
