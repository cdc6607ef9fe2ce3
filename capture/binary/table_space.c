/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/binary/table_space.h"

bool table_space_init(struct table_space *s, uint32_t row_count, uint32_t index_count, uint32_t wide_count)
{
    return extents_init(&s->rows, row_count) && extents_init(&s->index, index_count) && extents_init(&s->wide, wide_count);
}

void table_space_deinit(struct table_space *s)
{
    extents_deinit(&s->rows);
    extents_deinit(&s->index);
    extents_deinit(&s->wide);
}

bool table_space_take(struct table_space *s, const struct unwind_table *table, struct wire_module *place)
{
    if (extents_take(&s->rows, table->row_count, &place->row_start)) {
        if (extents_take(&s->index, table->index_count, &place->index_start)) {
            if (extents_take(&s->wide, table->wide_count, &place->wide_start))
                return true;
            extents_return(&s->index, place->index_start, table->index_count);
        }
        extents_return(&s->rows, place->row_start, table->row_count);
    }
    return false;
}

bool table_space_give(struct table_space *s, const struct wire_module *place, uint64_t time_ns)
{
    return extents_give(&s->rows, place->row_start, place->row_count, time_ns) &&
           extents_give(&s->index, place->index_start, place->index_count, time_ns) &&
           extents_give(&s->wide, place->wide_start, place->wide_count, time_ns);
}

bool table_space_free_after_grace(struct table_space *s, uint64_t time_ns)
{
    return extents_free_after_grace(&s->rows, time_ns) && extents_free_after_grace(&s->index, time_ns) &&
           extents_free_after_grace(&s->wide, time_ns);
}

bool table_space_is_coming(const struct table_space *s)
{
    return s->rows.waiting.count || s->index.waiting.count || s->wide.waiting.count;
}
