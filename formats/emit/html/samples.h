/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a page, as columns: each member of a sample has a stream of its own, in which neighbours resemble each
 * other and so take little room. A column in which there is nothing but 0 is left out.
 */
#ifndef FORMATS_EMIT_HTML_SAMPLES_H
#define FORMATS_EMIT_HTML_SAMPLES_H

#include "formats/emit/html/packed.h"

enum html_sample_column {
    HTML_SAMPLE_STACK,   /* its number, counted from 1; 0: the sample has no frames */
    HTML_SAMPLE_THREAD,  /* its number, as of events, sets of labels and captures */
    HTML_SAMPLE_EVENT,
    HTML_SAMPLE_TIME,    /* since the start of the sample's capture, as the difference from the sample before, zigzag */
    HTML_SAMPLE_VALUE,   /* and 1; 0: the event's period */
    HTML_SAMPLE_LABELS,
    HTML_SAMPLE_FLAGS,   /* enum html_sample_flag */
    HTML_SAMPLE_CAPTURE,
    HTML_SAMPLE_COLUMNS,
};

/* Bits 0 and 1 are an enum emit_gil. */
enum html_sample_flag { HTML_SAMPLE_CONTINUES = 4, HTML_SAMPLE_OWED = 8, HTML_SAMPLE_IN_INTERPRETER = 16 };

struct html_samples {
    struct {
        struct html_packed packed;
        uint64_t zeros; /* with nothing else before them, and not in `packed` yet */
        bool used;      /* something else came */
    } columns[HTML_SAMPLE_COLUMNS];
    uint64_t count;
};

/* Both are borrowed; `spool` takes what is too long for memory. */
void html_samples_init(struct html_samples *s, struct limits *limits, struct spool *spool);
void html_samples_deinit(struct html_samples *s);
/* A row: a number for each column. */
struct error *html_samples_add(struct html_samples *s, const uint64_t row[HTML_SAMPLE_COLUMNS]);
/* Writes the elements "sample-stack" and so on. */
struct error *html_samples_write(struct html_samples *s, FILE *out);

#endif
