/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The markers of the Firefox Profiler's file, spans of time in a thread:
 *
 *     wait: lock      a wait, from when the thread left its CPU until it came back
 *     asyncio task    samples in a row that were taken while one task ran
 *     GIL held        samples in a row that held the GIL
 *
 * A wait was measured. The others are known at the samples alone: a span of them ends where a sample is missing.
 * Markers are kept in a temporary file (spool.h).
 */
#ifndef FORMATS_EMIT_FIREFOX_MARKERS_H
#define FORMATS_EMIT_FIREFOX_MARKERS_H

#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/firefox/stacks.h"
#include "formats/emit/firefox/times.h"
#include "formats/emit/spool.h"

enum firefox_marker_kind { FIREFOX_MARKER_WAIT, FIREFOX_MARKER_TASK, FIREFOX_MARKER_GIL, FIREFOX_MARKERS };

/* A span that may still grow. */
struct firefox_span {
    bool open;
    uint64_t start_ns, end_ns; /* since the start of its capture */
    uint32_t label_set, capture;
    uint32_t stack; /* of a wait */
};

/* What the markers of a thread are made of. */
struct firefox_thread_markers {
    struct firefox_span open[FIREFOX_MARKERS];
    struct spool_list list; /* three runs for each marker */
    uint32_t count;
};

struct firefox_markers {
    const struct emit_model *model; /* borrowed, like what follows */
    struct limits *limits;
    struct spool *spool;
    struct firefox_times *times;
    VEC(struct firefox_thread_markers) threads; /* by the model's thread */
};

void firefox_markers_deinit(struct firefox_markers *m);
/* Takes a sample, in the order of time of its thread. */
struct error *firefox_markers_add(struct firefox_markers *m, const struct emit_sample *sample);
/* Closes the spans that are open, after the last sample. */
struct error *firefox_markers_end(struct firefox_markers *m);

#define FIREFOX_LABEL_TASK "asyncio task"
#define FIREFOX_LABEL_WAIT "wait"
#define FIREFOX_LABEL_WAKER "waker"
/* A set by its number, which a model without labels does not have: then an empty one. */
const struct emit_label_set *firefox_labels_of(const struct emit_model *model, uint32_t label_set);
/* The value of a label; NULL: the set has none of this key. */
const char *firefox_label(const struct emit_label_set *set, const char *key);

/* ---- writing: marker_table.c ---- */

/* Appends "markerSchema", the list that says how the Profiler shows each kind. */
void firefox_marker_schemas_put(struct buf *out);
/*
 * Writes the table of a thread's markers; `thread` FIREFOX_NONE: an empty one. Adds strings. A failed write is found by
 * whoever closes the file.
 */
struct error *firefox_markers_write(struct firefox_markers *m, struct firefox_stacks *stacks, uint32_t thread, FILE *out);

#endif
