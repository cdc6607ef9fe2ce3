/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of the live view, by PID and TID, with what they did. At most so many: those that did nothing lately make room
 * for new ones, and thread LIVE_OTHERS stands for all that have no row.
 */
#ifndef SYMBOLIZE_LIVE_THREADS_H
#define SYMBOLIZE_LIVE_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "symbolize/live/cells.h"

enum { LIVE_THREADS_MAX = 4096, LIVE_NAME_BYTES = 256 };

/* Of one interval, in ns; of an event that is no time, `ns` is in its unit. */
struct live_deeds {
    uint64_t ns[LIVE_MEASURES], samples;
    uint64_t gil_known_ns, gil_held_ns; /* where samples say whether the GIL was held, and where it was: also off the CPU */
    uint64_t wait_ns[EMIT_WAITS];
};

struct live_thread {
    uint32_t pid, tid;
    char process[LIVE_NAME_BYTES], name[LIVE_NAME_BYTES]; /* printable */
    uint64_t serials[2];       /* as in struct live_cell */
    struct live_deeds now[2];
    uint64_t all_ns[LIVE_MEASURES];
};

struct live_threads {
    struct map index;            /* pid << 32 | tid -> its number */
    VEC(struct live_thread) list; /* [LIVE_OTHERS] is there from the start */
    VEC(uint32_t) of_model;      /* by thread of the model: its number, counted from 1; 0: not looked up */
};

bool live_threads_init(struct live_threads *t);
void live_threads_deinit(struct live_threads *t);
/* Looks all threads of the model up again: they have other numbers or names. */
void live_threads_forget_model(struct live_threads *t);
/* The number of a thread of the model; UINT32_MAX: out of memory. */
uint32_t live_threads_of(struct live_threads *t, const struct emit_model *model, uint32_t thread);
/* What the thread does in the interval that is being counted. */
struct live_deeds *live_threads_now(struct live_threads *t, uint32_t number, uint64_t serial);
/* Ends an interval. */
void live_threads_end_interval(struct live_threads *t, uint64_t serial);
bool live_threads_are_many(const struct live_threads *t);
/*
 * Forgets threads without anything in the interval `serial`, and numbers the others anew: (*numbers)[old] is the new number,
 * LIVE_OTHERS of those that were forgotten. The caller frees *numbers. False: out of memory, and nothing changed.
 */
bool live_threads_shrink(struct live_threads *t, uint64_t serial, uint32_t **numbers);

static inline const struct live_deeds *live_thread_now(const struct live_thread *thread, uint64_t serial)
{
    static const struct live_deeds nothing;

    return thread->serials[serial & 1] == serial ? &thread->now[serial & 1] : &nothing;
}

#endif
