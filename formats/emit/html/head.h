/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of a page: what was recorded, who ran, what the numbers of its samples mean. */
#ifndef FORMATS_EMIT_HTML_HEAD_H
#define FORMATS_EMIT_HTML_HEAD_H

#include "formats/emit/emit.h"
#include "formats/emit/html/numbers.h"

/*
 * Times of samples are in this unit. Where a CPU is sampled at 99 Hz that is a twentieth of the time between its samples; of
 * a million samples of 8 CPUs the column of times takes 370 KB, in a tenth of a millisecond it would take 790.
 */
#define HTML_TIME_UNIT_NS 500000
#define HTML_NO_PERIOD UINT64_MAX

struct html_head {
    const struct emit_model *model; /* borrowed, like the rest */
    const struct emit_options *options;
    const char *title; /* of the page */
    struct html_numbers *processes, *threads, *label_sets, *frames;
    const uint64_t *periods; /* by event: the value of samples that say none; HTML_NO_PERIOD: there are no samples */
    uint32_t period_count;   /* events from this number on have no samples */
    uint64_t sample_count;
};

/* Writes the element "head": an object of JSON. Once, after the last sample. */
struct error *html_head_write(const struct html_head *h, FILE *out);

#endif
