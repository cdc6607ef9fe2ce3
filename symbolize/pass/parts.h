/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits the samples of an output into parts: by process, thread or series, and by windows of real time. Each part is written by
 * an emitter state of its own. Where parts go is the business of a sink: to files (symbolize/part_files.h) or elsewhere.
 *
 * A window is [k * length, (k + 1) * length) of CLOCK_REALTIME, as the clocks of the sample's capture say it. A part is
 * finished as soon as no samples can come for its window, so memory does not grow with the number of windows: the
 * recorder writes a sample at most REORDER_WINDOW_NS after its time. A sample that comes later still counts as one of the
 * newest window. Of several inputs this begins with the last: a file may hold the same time as one before it.
 *
 * Stores of profiles have series of profiles; the sink says which samples make one: those of one event, with equal labels. Such
 * a part has nothing that would tell its samples further apart, and nothing about the captures. Names of files are in full in
 * it: short ones depend on what else ran. Windows end in their order, and each is followed by what was lost in it.
 */
#ifndef SYMBOLIZE_PASS_PARTS_H
#define SYMBOLIZE_PASS_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/emit/emit.h"
#include "symbolize/pass/loss_windows.h"
#include "symbolize/pass/weigh.h"

#define PARTS_MAX (1u << 16) /* of one output */

enum parts_by {
    PARTS_BY_NOTHING,
    PARTS_BY_PROCESS,
    PARTS_BY_THREAD,
    PARTS_BY_SERIES, /* of these PARTS_MAX may be open at once */
};

/* Where a part goes while it is written. */
struct part_output {
    FILE *file;
    void *own; /* the sink's */
    /* Of emitters that divide what is too large (struct emit_most): what was written last, and its number in the part, from 0. */
    struct emit_chunk chunk;
    uint32_t chunk_number;
};

struct part_sink {
    /* A part begins. What it will be called may change until its end: threads and processes get their names late. */
    struct error *(*open)(struct part_sink *sink, struct part_output *out);
    /* A part is complete; `out` is the sink's to close. Parts that are never closed were not completed. */
    struct error *(*close)(struct part_sink *sink, const struct emit_model *model, const struct emit_part *part,
                           struct part_output *out);
    /* As close(), but another chunk of the part is written to the same file: takes this one out of it. Not called without `most`. */
    struct error *(*take)(struct part_sink *sink, const struct emit_model *model, const struct emit_part *part,
                          struct part_output *out);
    /* The number of the series that a sample belongs to; for PARTS_BY_SERIES. */
    struct error *(*find_series)(struct part_sink *sink, const struct emit_model *model, const struct emit_sample *sample,
                                 uint64_t window_begin_ns, uint32_t *series);
    /* What a capture lost in a window, after the parts of the window; `part` says when that was. NULL: nobody asks. */
    struct error *(*losses)(struct part_sink *sink, const struct emit_model *model, const struct emit_part *part,
                            const struct window_losses *losses);
    struct emit_most most; /* of one chunk */
};

struct parts_options {
    enum parts_by by;
    uint64_t window_ns;           /* 0: no windows */
    uint32_t input_count;
    const struct weigh_result *weighed; /* of all samples; borrowed. NULL: PARTS_BY_SERIES, where it makes no difference */
    struct part_sink *sink;       /* borrowed */
};

struct parts;
/* An emitter state like those of `emitter` in the parts; `model` and `options` are borrowed. Its functions: parts_emitter. */
struct error *parts_create(const struct parts_options *options, const struct emitter *emitter, const struct emit_model *model,
                           const struct emit_options *emit, struct parts **out);
/* Something was lost, noticed at that time (CLOCK_MONOTONIC): counts in its window, if there are windows. */
struct error *parts_lose(struct parts *p, uint32_t capture, uint64_t time_ns, const struct emit_loss *loss);
/* The functions sample, end, remark and destroy. The remark is the first one of a part. */
extern const struct emitter parts_emitter;
/* Number of samples that came when their window was complete. */
uint64_t parts_late_count(const struct parts *p);

#endif
