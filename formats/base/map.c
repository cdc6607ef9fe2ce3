/* SPDX-License-Identifier: Apache-2.0 */
/* Keys are mixed by MurmurHash3's finalizer; the table doubles when it is half full. */
#include "formats/base/map.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t k)
{
    k ^= k >> 33;
    k *= UINT64_C(0xff51afd7ed558ccd);
    k ^= k >> 33;
    k *= UINT64_C(0xc4ceb9fe1a85ec53);
    return k ^ k >> 33;
}

void map_deinit(struct map *m)
{
    free(m->slots);
    limits_give(m->limits, m->slot_count * sizeof *m->slots);
    *m = (struct map){.limits = m->limits};
}

void map_clear(struct map *m)
{
    if (m->slots)
        memset(m->slots, 0, m->slot_count * sizeof *m->slots);
    m->count = 0;
}

static uint64_t find(const struct map *m, uint64_t key)
{
    uint64_t i = mix(key) & (m->slot_count - 1);

    while (m->slots[i].used && m->slots[i].key != key)
        i = (i + 1) & (m->slot_count - 1);
    return i;
}

uint64_t *map_get(const struct map *m, uint64_t key)
{
    if (!m->slot_count)
        return NULL;
    struct map_slot *s = &m->slots[find(m, key)];
    return s->used ? &s->value : NULL;
}

bool map_set(struct map *m, uint64_t key, uint64_t value)
{
    if (m->count * 2 >= m->slot_count) {
        struct map old = *m;
        struct map big = {.slot_count = old.slot_count ? old.slot_count * 2 : 16, .limits = old.limits};
        if (!limits_take(m->limits, big.slot_count * sizeof *big.slots))
            return false;
        big.slots = calloc(big.slot_count, sizeof *big.slots);
        if (!big.slots) {
            limits_give(m->limits, big.slot_count * sizeof *big.slots);
            return false;
        }
        for (uint64_t i = 0; i < old.slot_count; i++) {
            if (old.slots[i].used) {
                big.slots[find(&big, old.slots[i].key)] = old.slots[i];
                big.count++;
            }
        }
        map_deinit(&old);
        *m = big;
    }
    struct map_slot *s = &m->slots[find(m, key)];
    if (!s->used)
        m->count++;
    *s = (struct map_slot){.key = key, .value = value, .used = true};
    return true;
}

void map_remove(struct map *m, uint64_t key)
{
    if (!m->slot_count)
        return;
    uint64_t hole = find(m, key);
    if (!m->slots[hole].used)
        return;
    m->count--;
    for (uint64_t i = hole;;) {
        i = (i + 1) & (m->slot_count - 1);
        if (!m->slots[i].used)
            break;
        /* An entry may move into the hole unless its home lies between the two. */
        uint64_t home = mix(m->slots[i].key) & (m->slot_count - 1);
        if (((i - home) & (m->slot_count - 1)) >= ((i - hole) & (m->slot_count - 1))) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole].used = false;
}
