/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/binary/table_space.h"

#include <string.h>

static_assert(sizeof(struct unwind_row) == sizeof(uint64_t) && sizeof(struct unwind_wide) == WIRE_WIDE_WORDS * sizeof(uint64_t),
              "rows are words");

bool table_space_init(struct table_space *s, const struct table_words *words)
{
    s->words = *words;
    return extents_init(&s->extents, words->count);
}

void table_space_deinit(struct table_space *s)
{
    extents_deinit(&s->extents);
}

/* A multiple of a wide row's words: so the next table's begin at one, too. */
static uint64_t words_of(uint64_t rows, uint64_t index, uint64_t wide)
{
    return (rows + index + (wide + 1) * WIRE_WIDE_WORDS - 1) / WIRE_WIDE_WORDS * WIRE_WIDE_WORDS;
}

uint64_t table_words_of(const struct unwind_table *t)
{
    return words_of(t->row_count, t->index_count, t->wide_count);
}

uint32_t table_space_words(const struct wire_module *place)
{
    return (uint32_t)words_of(place->row_count, place->index_count, place->wide_count);
}

uint32_t table_space_start(const struct wire_module *place)
{
    return place->wide_start;
}

/* Makes room by more words, if there may be so many. */
static struct error *grow(struct table_space *s, uint32_t need)
{
    uint32_t before = s->words.count, end = extents_end_gap(&s->extents), more = need - end;

    if (!s->words.grow || more > s->words.max - before)
        return NULL;
    TRY(s->words.grow(s->words.ctx, more, &s->words.count));
    if (s->words.count == before)
        s->words.max = before; /* it would be refused again */
    return extents_grow(&s->extents, s->words.count - before) ? NULL : error_no_memory();
}

struct error *table_space_put(struct table_space *s, const struct unwind_table *table, struct wire_module *place, bool *there)
{
    uint64_t need = table_words_of(table);
    uint32_t start;

    *there = false;
    if (need > s->words.max)
        return NULL;
    if (!extents_take(&s->extents, (uint32_t)need, &start)) {
        TRY(grow(s, (uint32_t)need));
        if (!extents_take(&s->extents, (uint32_t)need, &start))
            return NULL;
    }
    *place = (struct wire_module){
        .wide_start = start,
        .wide_count = table->wide_count,
        .row_start = start + table->wide_count * WIRE_WIDE_WORDS,
        .row_count = table->row_count,
        .index_start = start + table->wide_count * WIRE_WIDE_WORDS + table->row_count,
        .index_first = table->index_first,
        .index_count = table->index_count,
    };
    if (s->words.map)
        TRY(s->words.map(s->words.ctx, start, (uint32_t)need));
    struct unwind_table at = table_space_view(s, place);
    if (table->wide_count)
        memcpy(at.wide, table->wide, table->wide_count * sizeof *table->wide);
    memcpy(at.rows, table->rows, table->row_count * sizeof *table->rows);
    if (table->index_count)
        memcpy(at.index, table->index, table->index_count * sizeof *table->index);
    *there = true;
    return NULL;
}

bool table_space_equals(const struct table_space *s, const struct wire_module *place, const struct unwind_table *table)
{
    const struct unwind_table at = table_space_view(s, place);

    return at.row_count == table->row_count && at.index_count == table->index_count && at.index_first == table->index_first &&
           at.wide_count == table->wide_count && !memcmp(at.rows, table->rows, table->row_count * sizeof *table->rows) &&
           (!table->index_count || !memcmp(at.index, table->index, table->index_count * sizeof *table->index)) &&
           (!table->wide_count || !memcmp(at.wide, table->wide, table->wide_count * sizeof *table->wide));
}

struct unwind_table table_space_view(const struct table_space *s, const struct wire_module *place)
{
    uint64_t *words = s->words.words;

    return (struct unwind_table){
        .rows = (struct unwind_row *)(words + place->row_start),
        .wide = (struct unwind_wide *)(words + place->wide_start),
        .index = words + place->index_start,
        .row_count = place->row_count,
        .wide_count = place->wide_count,
        .index_first = place->index_first,
        .index_count = place->index_count,
    };
}

bool table_space_give(struct table_space *s, const struct wire_module *place, uint64_t time_ns)
{
    return extents_give(&s->extents, table_space_start(place), table_space_words(place), time_ns);
}

bool table_space_is_coming(const struct table_space *s)
{
    return s->extents.waiting.count > 0;
}
