/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One axis of time for all inputs, on which times never decrease, as readers of perf.data want it. It is the monotonic
 * clock of the first input. Inputs of another boot or host are placed by the wall clock. An input that would begin before
 * the end of the one before is moved behind it: so do two processes that have the same number not mix, either.
 */
#ifndef FORMATS_EMIT_PERF_DATA_TIMELINE_H
#define FORMATS_EMIT_PERF_DATA_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/emit/emit.h"

/* {0} before the first sample. */
struct timeline {
    uint64_t first_ns, last_ns; /* of the samples so far; 0: there is none */
    uint32_t capture;           /* the newest */
    int64_t shift_ns;           /* of its samples */
    bool moved;                 /* an input is not where the clocks say */
};

/* The time of the next sample on the axis, in nanoseconds: never 0. */
uint64_t timeline_place(struct timeline *t, const struct emit_model *model, const struct emit_sample *sample);

#endif
