/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of the sampler's arrays of unwind tables are in use. A table takes an extent in each of the three. */
#ifndef CAPTURE_BINARY_TABLE_SPACE_H
#define CAPTURE_BINARY_TABLE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "capture/binary/extents.h"
#include "formats/elf/unwind_table.h"

struct table_space {
    struct extents rows, index, wide;
};

/* As many elements as the arrays have. False: out of memory; then table_space_deinit() is still needed. */
bool table_space_init(struct table_space *s, uint32_t row_count, uint32_t index_count, uint32_t wide_count);
void table_space_deinit(struct table_space *s);
/* Stores the starts of extents for a table in `place`. False: there is no room, and nothing is taken. */
bool table_space_take(struct table_space *s, const struct unwind_table *table, struct wire_module *place);
/*
 * Gives back the extents of `place`, that a sample may still be reading. They become free in table_space_free_after_grace(). False:
 * out of memory.
 */
bool table_space_give(struct table_space *s, const struct wire_module *place, uint64_t time_ns);
/* Frees what was given back before `time_ns`. False: out of memory. */
bool table_space_free_after_grace(struct table_space *s, uint64_t time_ns);
/* Whether something was given back that is not free yet. */
bool table_space_is_coming(const struct table_space *s);

#endif
