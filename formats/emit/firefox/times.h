/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of the Firefox Profiler's file: milliseconds since its start, which is that of the first capture. Until all is
 * read they are kept as nanoseconds since the start of their own capture.
 */
#ifndef FORMATS_EMIT_FIREFOX_TIMES_H
#define FORMATS_EMIT_FIREFOX_TIMES_H

#include "formats/base/buf.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

struct firefox_times {
    const struct emit_model *model; /* borrowed */
    VEC(uint64_t) intervals;        /* by event, in ns; 0: not looked for yet */
    VEC(uint64_t) lasts;            /* by capture: the time of its last sample */
};

void firefox_times_deinit(struct firefox_times *t);
/*
 * The nanoseconds between two samples of an event of time, as they were asked for; a hundredth of a second if that is not
 * known, or the event is none of time. 0: out of memory.
 */
uint64_t firefox_interval(struct firefox_times *t, uint32_t event);
/* Notes the time of a sample. False: out of memory. */
bool firefox_times_note(struct firefox_times *t, const struct emit_sample *sample);
/* When the last of the captures ends, in nanoseconds since the start of the file. Complete after the last sample. */
uint64_t firefox_end(const struct firefox_times *t);
/* When a sample was taken, in nanoseconds since the start of its capture; at least 0. */
uint64_t firefox_time_of(const struct emit_model *model, const struct emit_sample *sample);
/* When the file starts, in nanoseconds since 1970; 0: no capture knows. */
uint64_t firefox_start(const struct emit_model *model);
/* How long after the start of the file a capture starts; 0 when unknown. */
uint64_t firefox_capture_start(const struct emit_model *model, uint32_t capture);
/* Appends a time as milliseconds: "12.000345". */
void firefox_put_ms(uint64_t ns, struct buf *out);

#endif
