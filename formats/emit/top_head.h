/* SPDX-License-Identifier: Apache-2.0 */
/* What stands above the tables of an event, in every output for people that is made of them (top.h). */
#ifndef FORMATS_EMIT_TOP_HEAD_H
#define FORMATS_EMIT_TOP_HEAD_H

#include "formats/base/buf.h"
#include "formats/emit/top.h"

/*
 * Appends a few lines: how many samples, how much time in how long a recording, of which programs, what the filters left,
 * and what the view hides.
 */
void top_head_put(const struct top_view *v, const struct top_event *e, struct buf *out);
/* Appends whose table it is, where they are kept apart: a line "gunicorn 26037, MainThread: 1.9 s, 26.3 %". */
void top_owner_put(const struct top_view *v, const struct top_event *e, const struct top_table *t, struct buf *out);
/* Appends how many tables of processes or threads are not shown, if any. */
void top_rest_put(const struct top_view *v, const struct top_event *e, struct buf *out);

/* Of a writer (struct top_writer) of text: nothing at the beginning, the head above each event, and below it */
struct error *top_head_begin(const struct top_view *v);
struct error *top_head_write(const struct top_view *v, const struct top_event *e, bool first);
/* what is not shown; and what an output without samples says. */
struct error *top_head_end_event(const struct top_view *v, const struct top_event *e);
struct error *top_head_end(const struct top_view *v, bool empty);

#endif
