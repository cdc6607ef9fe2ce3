/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do all samples weigh the same? Then their count says all; else shares have to be shares of weight. A capture's rate
 * may change, files of different rates may be shown together, and without BPF a sample weighs the CPU time since the
 * thread's last one.
 *
 * Events of time are compared with one another, since their sums may be; of others each is a class of its own.
 */
#ifndef FORMATS_EMIT_WEIGHTS_H
#define FORMATS_EMIT_WEIGHTS_H

#include "formats/base/vec.h"
#include "formats/emit/emit.h"

#define WEIGHTS_OF_TIME 0 /* the class of all events of time; of others: their number + 1 */

struct weights_class {
    uint64_t first; /* weight seen */
    bool seen, differ;
};

struct weights {
    VEC(struct weights_class) classes;
    bool differ; /* in any class */
};

static inline void weights_deinit(struct weights *w)
{
    VEC_DEINIT(&w->classes);
}

static inline uint32_t weights_class_of(const struct emit_model *m, uint32_t event)
{
    return m->events[event].is_time ? WEIGHTS_OF_TIME : event + 1;
}

/* False when memory ran out. */
static inline bool weights_add(struct weights *w, uint32_t number, uint64_t weight)
{
    while (number >= w->classes.count) {
        if (!VEC_PUSH(&w->classes, ((struct weights_class){0})))
            return false;
    }
    struct weights_class *c = &w->classes.data[number];
    if (!c->seen)
        *c = (struct weights_class){.first = weight, .seen = true};
    c->differ |= weight != c->first;
    w->differ |= c->differ;
    return true;
}

static inline bool weights_differ(const struct weights *w, uint32_t number)
{
    return number < w->classes.count && w->classes.data[number].differ;
}

#endif
