/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do all samples weigh the same? If not, shares must be shares of weight, not of the count. Weights differ when a
 * capture's rate changes, when files of different rates are shown together, and without BPF, where a sample weighs the CPU
 * time since the thread's last one. Waits are always shown by weight: a sample is one wait of any length, or stands for
 * others.
 *
 * All events of time form one class, in which weights are compared; every other event is a class of its own.
 */
#ifndef FORMATS_EMIT_WEIGHTS_H
#define FORMATS_EMIT_WEIGHTS_H

#include "formats/base/vec.h"
#include "formats/emit/emit.h"

#define WEIGHTS_OF_TIME 0 /* the class of all events of time; other events are counted from 1 */

struct weights_class {
    uint64_t first; /* the weight of the first sample */
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
    return event_is_time(m->events[event].kind) ? WEIGHTS_OF_TIME : event + 1;
}

/* Are samples of an event of any length, such as waits, and so shown by weight whatever they are? */
static inline bool weights_of_waits(const struct emit_event *event)
{
    return event_is_waiting(event->kind) || event->kind == EVENT_WALL_TIME || (event_is_time(event->kind) && event_is_counted(event->kind));
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

/* Of a class that is shown by weight, whatever its samples weigh. False when memory ran out. */
static inline bool weights_add_always(struct weights *w, uint32_t number)
{
    if (!weights_add(w, number, 0))
        return false;
    w->classes.data[number].differ = w->differ = true;
    return true;
}

/* Did two samples of the class differ? False for a class without samples. */
static inline bool weights_differ(const struct weights *w, uint32_t number)
{
    return number < w->classes.count && w->classes.data[number].differ;
}

#endif
