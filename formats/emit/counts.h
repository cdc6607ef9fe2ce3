/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples counted by (owner, stack), one table per event. This is all that folded and top do while samples come:
 * frames are spelled once per distinct stack, when the last sample is in.
 */
#ifndef FORMATS_EMIT_COUNTS_H
#define FORMATS_EMIT_COUNTS_H

#include "formats/base/map.h"
#include "formats/base/vec.h"

struct counts {
    VEC(struct map) events; /* by event: owner << 32 | stack -> samples */
};

static inline void counts_deinit(struct counts *c)
{
    for (size_t i = 0; i < c->events.count; i++)
        map_deinit(&c->events.data[i]);
    VEC_DEINIT(&c->events);
}

/* False when memory ran out. */
static inline bool counts_add(struct counts *c, uint32_t event, uint32_t owner, uint32_t stack)
{
    uint64_t key = (uint64_t)owner << 32 | stack;

    while (event >= c->events.count) {
        if (!VEC_PUSH(&c->events, ((struct map){0})))
            return false;
    }
    uint64_t *samples = map_get(&c->events.data[event], key);
    if (samples) {
        ++*samples;
        return true;
    }
    return map_set(&c->events.data[event], key, 1);
}

/* Events that were sampled. */
static inline unsigned counts_events(const struct counts *c)
{
    unsigned n = 0;

    for (size_t i = 0; i < c->events.count; i++)
        n += c->events.data[i].count != 0;
    return n;
}

#endif
