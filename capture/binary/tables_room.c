/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/binary/tables_parts.h"

#include <stdlib.h>

#include "capture/binary/table_victims.h"
#include "formats/base/clock.h"

void tables_note_change(struct tables *t)
{
    if (t->memory.changes)
        __atomic_fetch_add(t->memory.changes, 1, __ATOMIC_SEQ_CST);
}

void tables_hide(struct tables *t, uint32_t number)
{
    __atomic_store_n(&t->memory.modules[number].row_count, 0, __ATOMIC_RELEASE);
}

void tables_new_generation(struct tables *t)
{
    if (t->memory.generation)
        __atomic_fetch_add(t->memory.generation, 1, __ATOMIC_RELEASE);
}

static uint64_t laid_in_words(const struct tables *t)
{
    uint64_t words = t->space.extents.used;

    for (size_t i = 0; i < t->space.extents.waiting.count; i++)
        words -= t->space.extents.waiting.data[i].count;
    return words;
}

void tables_lack(struct tables *t, uint32_t number)
{
    struct table_entry *e = &t->entries.data[number];

    if (e->lacks)
        return;
    e->lacks = true;
    table_wants_lack(&t->wants, e->hash, e->words, laid_in_words(t), e->module->path, e->at_least);
}

void tables_lack_no_more(struct tables *t, uint32_t number)
{
    struct table_entry *e = &t->entries.data[number];

    if (e->lacks)
        table_wants_forget(&t->wants, e->hash, e->words);
    e->lacks = false;
}

/* A place is used when one of those that share it is. */
static void note_uses(struct tables *t)
{
    for (uint32_t i = 0; i < t->entries.count; i++) {
        const struct table_entry *e = &t->entries.data[i];
        if (e->state == ENTRY_IN && t->memory.modules[e->place].used_s < t->memory.modules[i].used_s)
            t->memory.modules[e->place].used_s = t->memory.modules[i].used_s;
    }
}

/* The places that could be made free; to be freed by the caller. NULL: out of memory. */
static struct table_place *places_of(struct tables *t, size_t *count)
{
    struct table_place *places = calloc(t->entries.count + 1, sizeof *places);

    *count = 0;
    note_uses(t);
    for (uint32_t i = 0; places && i < t->entries.count; i++) {
        const struct table_entry *e = &t->entries.data[i];
        const struct wire_module *m = &t->memory.modules[i];
        if (e->state == ENTRY_IN && e->place == i)
            places[(*count)++] = (struct table_place){.number = i, .start = table_space_start(m), .count = table_space_words(m),
                                                      .used_s = m->used_s, .cold_s = COLD_S << e->returns, .pid = e->pid};
    }
    return places;
}

/* Takes a place out: the sampler finds no table there from now on, and the space is free a little later. */
static bool take_out(struct tables *t, uint32_t number, uint64_t time_ns)
{
    struct wire_module old = t->memory.modules[number];

    tables_note_change(t);
    for (uint32_t i = 0; i < t->entries.count; i++) {
        struct table_entry *e = &t->entries.data[i];
        if (e->state != ENTRY_IN || e->place != number)
            continue;
        tables_hide(t, i);
        e->state = ENTRY_OUT;
        e->gave = true;
    }
    tables_new_generation(t);
    tables_note_change(t);
    return table_space_give(&t->space, &old, time_ns);
}

struct error *tables_find_room(struct tables *t, uint64_t words, pid_t pid, uint64_t time_ns, bool make, bool *room)
{
    const struct table_wish wish = {.count = words, .max = t->space.words.max, .now_s = (uint32_t)(time_ns / NS_PER_S), .pid = pid};
    size_t count;
    struct table_place *places = places_of(t, &count);
    bool ok = places;

    *room = ok && table_victims_choose(places, count, &t->space.extents, &wish);
    for (size_t i = 0; ok && make && i < count; i++)
        ok = !places[i].leaves || take_out(t, places[i].number, time_ns);
    free(places);
    return ok ? NULL : error_no_memory();
}
