/* SPDX-License-Identifier: Apache-2.0 */
/* An open-addressing table of ids, beside an array of the strings by id; hashes are xxh3. */
#define XXH_INLINE_ALL
#include "formats/base/intern.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void intern_deinit(struct intern *t)
{
    limits_give(t->arena.limits, intern_bytes(t) - t->arena.total_bytes);
    arena_deinit(&t->arena);
    free(t->entries);
    free(t->slots);
    *t = (struct intern){.arena = t->arena};
}

void intern_clear(struct intern *t)
{
    arena_deinit(&t->arena);
    t->count = 0;
    if (t->slots)
        memset(t->slots, 0, t->slot_count * sizeof *t->slots);
}

static uint64_t table_bytes(uint32_t cap, uint32_t slot_count)
{
    return cap * (uint64_t)sizeof(struct intern_entry) + slot_count * (uint64_t)sizeof(uint32_t);
}

static bool grow(struct intern *t)
{
    uint32_t slot_count = t->slot_count ? t->slot_count * 2 : 64;
    uint32_t cap = slot_count / 2;

    if (slot_count > UINT32_C(1) << 30)
        return false;
    uint64_t more = table_bytes(cap, slot_count) - table_bytes(t->cap, t->slot_count);
    if (!limits_take(t->arena.limits, more))
        return false;
    struct intern_entry *entries = realloc(t->entries, cap * sizeof *entries);
    uint32_t *slots = entries ? calloc(slot_count, sizeof *slots) : NULL;
    if (entries)
        t->entries = entries;
    if (!slots) {
        limits_give(t->arena.limits, more);
        return false;
    }
    t->cap = cap;
    for (uint32_t id = 0; id < t->count; id++) {
        uint32_t i = entries[id].hash & (slot_count - 1);
        while (slots[i])
            i = (i + 1) & (slot_count - 1);
        slots[i] = id + 1;
    }
    free(t->slots);
    t->slots = slots;
    t->slot_count = slot_count;
    return true;
}

/* The slot that holds these bytes, or the free one where they belong. */
static uint32_t find_slot(const struct intern *t, const void *data, uint32_t len_bytes, uint32_t hash)
{
    uint32_t i = hash & (t->slot_count - 1);

    while (t->slots[i]) {
        const struct intern_entry *e = &t->entries[t->slots[i] - 1];
        if (e->hash == hash && e->len_bytes == len_bytes && (!len_bytes || !memcmp(e->data, data, len_bytes)))
            break;
        i = (i + 1) & (t->slot_count - 1);
    }
    return i;
}

uint32_t intern_id(struct intern *t, const void *data, uint32_t len_bytes, bool *added)
{
    if (added)
        *added = false;
    if (t->count >= t->cap && !grow(t))
        return INTERN_NONE;
    uint32_t hash = (uint32_t)XXH3_64bits(data, len_bytes);
    uint32_t slot = find_slot(t, data, len_bytes, hash);
    if (t->slots[slot])
        return t->slots[slot] - 1;
    void *copy = arena_dup(&t->arena, data, len_bytes);
    if (!copy)
        return INTERN_NONE;
    t->entries[t->count] = (struct intern_entry){.data = copy, .len_bytes = len_bytes, .hash = hash};
    t->slots[slot] = ++t->count;
    if (added)
        *added = true;
    return t->count - 1;
}

uint32_t intern_find(const struct intern *t, const void *data, uint32_t len_bytes)
{
    if (!t->slot_count)
        return INTERN_NONE;
    uint32_t slot = find_slot(t, data, len_bytes, (uint32_t)XXH3_64bits(data, len_bytes));
    return t->slots[slot] ? t->slots[slot] - 1 : INTERN_NONE;
}
