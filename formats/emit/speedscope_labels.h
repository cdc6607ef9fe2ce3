/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With --labels: the samples of each value of a label, such as those of an asyncio task, of a subinterpreter, or those
 * that held the GIL. Each value becomes a profile of its own, beside those of threads.
 *
 * Samples are counted by their set of labels and their stack. Which sets have a value is looked up at the end.
 */
#ifndef FORMATS_EMIT_SPEEDSCOPE_LABELS_H
#define FORMATS_EMIT_SPEEDSCOPE_LABELS_H

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/counts.h"
#include "formats/emit/emit.h"
#include "formats/emit/speedscope_sum.h"

/* A value of a label, as it occurs in the samples of an event. */
struct speedscope_value {
    uint32_t event;
    uint32_t name; /* in speedscope_labels.names */
    uint64_t weight;
};

struct speedscope_labels {
    const struct emit_model *model; /* borrowed, like the limits */
    struct limits *limits;
    struct counts counts; /* by label set and what is known of the GIL */
    struct intern names;  /* "asyncio task fetch" */
    VEC(uint32_t) set_first, set_names; /* by label set: where its names begin; the names */
    VEC(struct speedscope_value) values; /* the heaviest of each event, in the order in which they are shown */
};

/* {.model, .limits, .counts.limits, .names.arena.limits} is empty. */
void speedscope_labels_deinit(struct speedscope_labels *l);
/* Counts a sample. False: out of memory. */
bool speedscope_labels_add(struct speedscope_labels *l, const struct emit_sample *sample);
/* Fills `values`, after the last sample: of events of time first, the heaviest first, at most 50 of each event. */
struct error *speedscope_labels_end(struct speedscope_labels *l);
/* Adds the samples of a value to a sum. */
struct error *speedscope_labels_sum(const struct speedscope_labels *l, const struct speedscope_value *value,
                                    struct speedscope_sum *sum);

#endif
