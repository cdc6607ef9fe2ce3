/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts samples in order of time, within a bounded window.
 *
 * A SAMPLES record holds the samples of one event, so records of two events that run
 * side by side overlap in time. The writer promises (trace.h) that a sample is in the
 * file at most two seconds after its time by the clock of the samples themselves; a
 * sample that is older than the newest one by more than that can be passed on. A sample
 * that comes even later breaks the promise: it is passed on at once, with the time of the
 * last sample of its thread, and counted.
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
    VEC(struct emit_sample) held; /* in the order of arrival */
    bool unsorted;
    uint64_t newest_ns;
    VEC(uint64_t) last_ns; /* by thread: time of the last sample that was passed on */
    uint64_t late_count;
};

void reorder_deinit(struct reorder *o);
struct error *reorder_sample(struct reorder *o, const struct emit_sample *sample);
/* Passes all samples on. Call at the end, and before samples of another clock. */
struct error *reorder_flush(struct reorder *o);

#endif
