/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of samples and weights by (owner, stack), one table per event. This is all that folded and top do while samples
 * come; they name frames at the end, once per distinct stack. An owner is whatever the emitter keeps apart, such as a
 * process.
 */
#ifndef FORMATS_EMIT_COUNTS_H
#define FORMATS_EMIT_COUNTS_H

#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/weights.h"

struct count {
    uint64_t samples, weight; /* of the event: nanoseconds, for clocks */
};

struct counts {
    VEC(struct map) events; /* by event: owner << 32 | stack -> row */
    VEC(struct count) rows;
    struct weights weights;
    struct limits *limits; /* borrowed; NULL: none */
};

static inline void counts_deinit(struct counts *c)
{
    for (size_t i = 0; i < c->events.count; i++)
        map_deinit(&c->events.data[i]);
    VEC_DEINIT(&c->events);
    limits_give(c->limits, c->rows.count * sizeof(struct count));
    VEC_DEINIT(&c->rows);
    weights_deinit(&c->weights);
}

/* Adds a sample. False: out of memory. */
static inline bool counts_add(struct counts *c, const struct emit_model *m, const struct emit_sample *s, uint32_t owner)
{
    uint64_t key = (uint64_t)owner << 32 | s->stack;

    while (s->event >= c->events.count) {
        if (!VEC_PUSH(&c->events, ((struct map){.limits = c->limits})))
            return false;
    }
    uint32_t class = weights_class_of(m, s->event);
    if (!(weights_of_waits(&m->events[s->event]) ? weights_add_always(&c->weights, class) : weights_add(&c->weights, class, s->value)))
        return false;
    const uint64_t *row = map_get(&c->events.data[s->event], key);
    if (row) {
        c->rows.data[*row].samples++;
        c->rows.data[*row].weight += s->value;
        return true;
    }
    if (!limits_take(c->limits, sizeof(struct count)))
        return false;
    if (VEC_PUSH(&c->rows, ((struct count){.samples = 1, .weight = s->value})))
        return map_set(&c->events.data[s->event], key, c->rows.count - 1);
    limits_give(c->limits, sizeof(struct count));
    return false;
}

/* The sums behind a used slot of one of the tables. */
static inline const struct count *counts_get(const struct counts *c, const struct map_slot *slot)
{
    return &c->rows.data[slot->value];
}

/* How many events have samples. */
static inline unsigned counts_events(const struct counts *c)
{
    unsigned n = 0;

    for (size_t i = 0; i < c->events.count; i++)
        n += c->events.data[i].count != 0;
    return n;
}

#endif
