/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts samples in order of time, within a bounded window.
 *
 * A SAMPLES record holds the samples of one event, so records of two events that run
 * side by side overlap in time. The writer promises (trace.h) that a sample is in the
 * file at most two seconds after its time by the clock of the samples themselves; what
 * is older than the newest one by more than that can go out. A sample that comes later
 * still breaks the promise: it goes out at once, with the time of the last one of its
 * thread, and is counted.
 */
#ifndef SYMBOLIZE_PASS_REORDER_H
#define SYMBOLIZE_PASS_REORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

#define REORDER_WINDOW_NS UINT64_C(2000000000)
#define REORDER_MAX_SAMPLES (1u << 20) /* held back at most */

struct reorder {
    const struct emitter *emitter;
    void *state;
    VEC(struct emit_sample) held; /* in the order they came */
    bool unsorted;
    uint64_t newest_ns;
    VEC(uint64_t) last_ns; /* by thread: time of the last sample that went out */
    uint64_t late_count;
};

void reorder_deinit(struct reorder *o);
struct error *reorder_sample(struct reorder *o, const struct emit_sample *sample);
/* Everything goes out: at the end, and before another clock begins. */
struct error *reorder_flush(struct reorder *o);

#endif
