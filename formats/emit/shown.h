/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an output is of, for its head: what filters left of an event, "6.90 s of 7.31 s shown", and how much of that the
 * interpreter took.
 */
#ifndef FORMATS_EMIT_SHOWN_H
#define FORMATS_EMIT_SHOWN_H

#include "formats/base/buf.h"
#include "formats/emit/emit.h"

/*
 * Appends that text for an event of the model: in seconds, bytes, or whatever else the event counts. Appends nothing if
 * there are no filters. The totals are complete after the last sample.
 */
void shown_put(const struct emit_model *model, uint32_t event, struct buf *out);
/*
 * Appends how much of what is shown of the event was in the interpreter, whose frames are hidden: "79.6 % of the time was
 * in the interpreter, working for the functions shown". For an event that has some.
 */
void shown_put_interpreter(const struct emit_model *model, uint32_t event, struct buf *out);
/* Appends a line: "1,480 samples of cpu-clock: 7.3 s of CPU time, recorded in 10.0 s". The two numbers are those shown. */
void shown_put_samples(const struct emit_model *model, uint32_t event, uint64_t samples, uint64_t weight, struct buf *out);
/* Appends, where they say anything, a line of what the filters left and one of the interpreter's share. */
void shown_put_totals(const struct emit_model *model, uint32_t event, struct buf *out);

#endif
