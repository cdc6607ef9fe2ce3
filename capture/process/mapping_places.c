/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/process/mapping_places.h"

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

struct error *mapping_places_init(struct mapping_places *m, struct quotas *quotas, struct wire_mapping *lists, uint32_t count)
{
    uint32_t start;

    *m = (struct mapping_places){.quotas = quotas, .lists = lists};
    if (!VEC_EXTEND_ZERO(&m->all, 1))
        return error_no_memory();
    return !lists || (extents_init(&m->space, count) && extents_take(&m->space, 1, &start)) ? NULL : error_no_memory();
}

void mapping_places_deinit(struct mapping_places *m)
{
    extents_deinit(&m->space);
    VEC_DEINIT(&m->all);
    VEC_DEINIT(&m->unused);
    map_deinit(&m->by_id);
    map_deinit(&m->by_hash);
}

uint32_t mapping_places_find(const struct mapping_places *m, uint64_t id)
{
    const uint64_t *place = id ? map_get(&m->by_id, id) : NULL;

    return place ? (uint32_t)*place : 0;
}

/* Returns a place without holders; 0: out of memory. */
static uint32_t new_place(struct mapping_places *m, uint32_t start, uint32_t count)
{
    uint32_t place = m->unused.count ? m->unused.data[m->unused.count - 1] : (uint32_t)m->all.count;

    if (!VEC_EXTEND_ZERO(&m->all, (size_t)place + 1) || !VEC_RESERVE(&m->unused, m->all.count) ||
        !map_set(&m->by_id, m->last_id + 1, place))
        return 0;
    m->unused.count -= m->unused.count && m->unused.data[m->unused.count - 1] == place;
    m->all.data[place] = (struct mapping_place){.id = ++m->last_id, .start = start, .count = count};
    return place;
}

/* As much as the process's quota allows. */
static bool take_space(struct mapping_places *m, uint32_t slot, uint32_t count, uint64_t time_ns, uint32_t *start)
{
    if (!quota_take(m->quotas, slot, QUOTA_places, count, time_ns))
        return false;
    if (extents_take(&m->space, count, start))
        return true;
    quota_give(m->quotas, slot, QUOTA_places, count);
    quota_refuse(m->quotas, slot, QUOTA_places, count);
    return false;
}

/* The place of an equal list; 0: there is none. Heads differ by the list's number. */
static uint32_t equal_place(const struct mapping_places *m, const struct wire_mapping *list, uint32_t count, uint64_t hash)
{
    const uint64_t *known = map_get(&m->by_hash, hash);
    const struct mapping_place *p = known ? &m->all.data[*known] : NULL;

    if (!p || p->count != count || memcmp(m->lists + p->start + 1, list + 1, (count - 1) * sizeof *list))
        return 0;
    return (uint32_t)*known;
}

/* Copies the list to a new place. 0 in *place: there is no room. */
static struct error *lay_new(struct mapping_places *m, uint32_t slot, const struct wire_mapping *list, uint32_t count,
                             uint64_t hash, uint64_t time_ns, uint32_t *place)
{
    uint32_t start;

    *place = 0;
    if (!take_space(m, slot, count, time_ns, &start))
        return NULL;
    struct wire_mapping *to = m->lists + start;
    struct error *err = m->map_pages ? m->map_pages(m->ctx, to, count * sizeof *to) : NULL;
    *place = err ? 0 : new_place(m, start, count);
    if (!*place) {
        extents_return(&m->space, start, count);
        quota_give(m->quotas, slot, QUOTA_places, count);
        return err ? err : error_no_memory();
    }
    struct mapping_place *p = &m->all.data[*place];
    memcpy(to, list, count * sizeof *to);
    to->key = mapping_place_key(p);
    p->hash = hash;
    p->payer = slot;
    map_set(&m->by_hash, hash, *place); /* out of memory: it is not found */
    return NULL;
}

struct error *mapping_places_lay(struct mapping_places *m, uint32_t slot, const struct wire_mapping *list, uint32_t count,
                                 uint64_t time_ns, uint32_t *place)
{
    uint64_t hash = XXH3_64bits_withSeed(list, count * sizeof *list, (uintptr_t)m);

    *place = equal_place(m, list, count, hash);
    return *place ? NULL : lay_new(m, slot, list, count, hash, time_ns, place);
}

void mapping_places_hold(struct mapping_places *m, uint32_t place)
{
    if (place)
        m->all.data[place].holders++;
}

void mapping_places_pay(struct mapping_places *m, uint32_t place, uint32_t slot)
{
    struct mapping_place *p = &m->all.data[place];

    quota_owe(m->quotas, slot, QUOTA_places, p->count, 0);
    p->payer = slot;
}

/* Nobody holds it any more; a sample that is being taken may still look there. */
static void give_back(struct mapping_places *m, uint32_t place, uint64_t time_ns)
{
    const struct mapping_place *p = &m->all.data[place];
    const uint64_t *known = map_get(&m->by_hash, p->hash);

    extents_give(&m->space, p->start, p->count, time_ns);
    map_remove(&m->by_id, p->id);
    if (known && *known == place)
        map_remove(&m->by_hash, p->hash);
    m->unused.data[m->unused.count++] = place; /* there is room: new_place() */
}

bool mapping_places_release(struct mapping_places *m, uint32_t place, uint32_t slot, uint64_t time_ns)
{
    if (!place)
        return false;
    struct mapping_place *p = &m->all.data[place];
    bool paid = p->payer == slot;
    if (paid)
        quota_give(m->quotas, slot, QUOTA_places, p->count);
    if (--p->holders)
        return paid;
    give_back(m, place, time_ns);
    return false;
}

struct error *mapping_places_free(struct mapping_places *m, uint64_t before_ns)
{
    /* An exchange, so that nothing else comes to lie there before. */
    for (size_t i = 0; i < m->space.waiting.count && m->space.waiting.data[i].time_ns < before_ns; i++)
        __atomic_exchange_n(&m->lists[m->space.waiting.data[i].start].key, 0, __ATOMIC_SEQ_CST);
    return extents_free_after_grace(&m->space, before_ns) ? NULL : error_no_memory();
}
