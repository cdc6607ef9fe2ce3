/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the samples that the user asked for. A filter is a row of the table in sample_filter.c (its option and what
 * it depends on) and a function. A filter that depends on the process, thread, event or label set is evaluated once for
 * each of them in an epoch; only others are evaluated for every sample. A sample has to pass all filters.
 */
#ifndef SYMBOLIZE_PASS_SAMPLE_FILTER_H
#define SYMBOLIZE_PASS_SAMPLE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/options.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"
#include "symbolize/trace/epoch.h"

/* The options that select samples. */
struct sample_filter_options {
    struct option_numbers pids, tids; /* empty: all */
    uint64_t from_ns, to_ns;      /* since the start of each file; to_ns is exclusive */
    bool gil;                     /* only of threads that held the GIL */
};

/* What a filter depends on: its answer holds for all samples of the same process, thread, … */
enum sample_filter_subject {
    FILTER_PROCESS,
    FILTER_THREAD,
    FILTER_EVENT,
    FILTER_LABELS,
    FILTER_SAMPLE, /* evaluated for every sample */
    FILTER_SUBJECTS,
};

enum sample_filter_answer {
    FILTER_OPEN, /* not evaluated yet */
    FILTER_YES,
    FILTER_NO,
    FILTER_UNKNOWN, /* the trace does not say; then the sample is left out */
};

/* The arguments of a filter. */
struct sample_filter_view {
    const struct epoch *epoch;
    uint32_t process, thread, event, label_set; /* the epoch's ids */
    const struct trace_sample *sample;          /* FILTER_SAMPLE only */
    uint64_t since_start_ns;                    /* FILTER_SAMPLE only: since the start of the file */
};

struct sample_filter_row {
    const char *option;
    enum sample_filter_subject subject;
    bool (*is_enabled)(const struct sample_filter_options *o);
    enum sample_filter_answer (*passes)(const struct sample_filter_options *o, const struct sample_filter_view *v);
    const char *unknown; /* the error text when every answer was FILTER_UNKNOWN; NULL if that cannot be */
};

/* A filter that the options select, and how often its answer was known. */
struct sample_filter_enabled {
    const struct sample_filter_row *row;
    uint64_t known_count, unknown_count;
};

struct sample_filter {
    const struct sample_filter_options *options;
    bool is_enabled; /* any option selects a filter */
    VEC(struct sample_filter_enabled) enabled[FILTER_SUBJECTS];
    VEC(uint8_t) answers[FILTER_SAMPLE]; /* by subject and its id in the epoch: enum sample_filter_answer */
};

/* `options` are borrowed. */
struct error *sample_filter_init(struct sample_filter *f, const struct sample_filter_options *options);
void sample_filter_deinit(struct sample_filter *f);
/* Sets *passes. `event` is the epoch's id; `start_ns` is the time when the file began. */
struct error *sample_filter_sample(struct sample_filter *f, const struct epoch *e, uint32_t event,
                                   const struct trace_sample *sample, uint64_t start_ns, bool *passes);
/* False if every sample passes, so that there is no need to call sample_filter_sample(). */
static inline bool sample_filter_is_enabled(const struct sample_filter *f)
{
    return f->is_enabled;
}
/* Call after a record was loaded into the epoch: forgets the answers that it may have changed. */
void sample_filter_record(struct sample_filter *f, const struct trace_record *rec);
void sample_filter_end_epoch(struct sample_filter *f);
/* Call after the last sample: returns an error if the trace could not answer a filter for any of them. */
struct error *sample_filter_check(const struct sample_filter *f);

#endif
