/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the samples that the user asked for. A filter is a row of the table in sample_filters.c: its option, what its
 * answer depends on, and two functions, one that answers and one that names what the filter could have chosen. A filter
 * that depends on the process, thread, event or label set is evaluated once for each of them in an epoch; only others
 * are evaluated for every sample. A sample has to pass all filters.
 *
 * Each filter is evaluated by itself, whatever the others say, so that an output without a sample can be explained: by
 * the first filter that lets no sample pass, or else by the first that lets none pass of those that the filters before
 * it let pass.
 */
#ifndef SYMBOLIZE_PASS_SAMPLE_FILTER_H
#define SYMBOLIZE_PASS_SAMPLE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/options.h"
#include "formats/base/pattern.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"
#include "symbolize/stack/inventory.h"
#include "symbolize/pass/time_range.h"
#include "symbolize/stack/given.h"
#include "symbolize/trace/epoch.h"

/* From the first to the last, both included. */
struct number_range {
    uint32_t first, last;
};
struct number_ranges {
    struct number_range *data;
    size_t count, cap;
};

/* The options that select samples. Of an empty list nothing is asked; of several values one is enough. */
struct sample_filter_options {
    struct option_numbers pids, tids, subinterpreters;
    struct number_ranges cpus;
    struct patterns comms, exes, threads, tasks;
    struct option_texts cgroups, containers, events;
    struct time_range time;
    bool wall;   /* only of events that wall time consists of */
    bool gil;    /* only of threads that held the GIL */
    bool around; /* only from the first to the last sample that a first pass found (struct file_scouted) */
    const struct given *given; /* for messages; borrowed; NULL: not known */
};
void sample_filter_options_deinit(struct sample_filter_options *o);

/* What a first pass found out about a file (scout.h). */
struct file_scouted {
    uint64_t duration_ns;       /* from its start to its end, or to the last sample if it has none */
    uint64_t first_ns, last_ns; /* since its start: samples whose stacks match --around */
    bool matched;               /* there are such samples */
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
    FILTER_YES,
    FILTER_NO,
    FILTER_UNKNOWN, /* the trace does not say; then the sample is left out */
};

/* The file that is being read. */
struct sample_filter_file {
    struct file_times times;
    bool has_start;
    bool time_known;          /* whether the range of --time can be applied to it */
    uint64_t from_ns, to_ns;  /* that range, since the start */
    struct file_scouted scouted;
};

/* The arguments of a filter. */
struct sample_filter_view {
    const struct epoch *epoch;
    const struct sample_filter_file *file;
    uint32_t process, thread, event, label_set; /* the epoch's ids */
    const struct trace_sample *sample;          /* FILTER_SAMPLE only */
    uint64_t since_start_ns;                    /* FILTER_SAMPLE only: since the start of the file */
};

struct sample_filter_row {
    const char *option; /* without dashes */
    const char *values; /* what it chooses among: "processes"; NULL: nothing that could be listed */
    enum sample_filter_subject subject;
    bool (*is_enabled)(const struct sample_filter_options *o);
    enum sample_filter_answer (*passes)(const struct sample_filter_options *o, const struct sample_filter_view *v);
    /* Appends what the filter looked at; nothing if there is none. NULL if `values` is. */
    void (*describe)(const struct sample_filter_view *v, struct buf *out);
    const char *unknown; /* the error text when every answer was FILTER_UNKNOWN; NULL if that cannot be */
    bool is_time;        /* chooses by time: a message says when there are samples */
};
extern const struct sample_filter_row sample_filters[];
extern const size_t sample_filter_count;

/* A filter that the options select. Its number is that of its bit in the sets below. */
struct sample_filter_enabled {
    const struct sample_filter_row *row;
    uint64_t known_count, unknown_count; /* answers */
    struct inventory inventory;
    VEC(uint32_t) values; /* by the subject's id in the epoch: value of the inventory + 1; 0: not looked up */
};
/* The answers to all filters of a subject, for one id. */
struct sample_filter_answers {
    bool asked;
    uint32_t passed; /* set of filters */
};

struct sample_filter {
    const struct sample_filter_options *options;
    const struct file_scouted *scouted; /* by file; borrowed; NULL: no file was scouted */
    VEC(struct sample_filter_enabled) enabled;
    uint32_t of_subject[FILTER_SUBJECTS]; /* sets of filters */
    uint32_t passed_alone;                /* filters that some sample passed */
    uint32_t passed_together;             /* how many filters, counted from the first, some sample passed */
    /* Of the samples met, for messages: since the start of their files, and since 1970; the first of none is the largest. */
    uint64_t first_ns, last_ns, first_date_ns, last_date_ns;
    VEC(struct sample_filter_answers) answers[FILTER_SAMPLE]; /* by subject and its id in the epoch */
    size_t renamed_count; /* of the epoch's renamed processes: what was found out before they were is forgotten */
    struct sample_filter_file file;
    struct buf scratch;
};

/* `options` are borrowed. */
struct error *sample_filter_init(struct sample_filter *f, const struct sample_filter_options *options);
void sample_filter_deinit(struct sample_filter *f);
/* Call before the records of each file; `number` counts from 0. */
void sample_filter_begin_file(struct sample_filter *f, uint32_t number);
/* Sets *passes. `event` is the epoch's id. */
struct error *sample_filter_sample(struct sample_filter *f, const struct epoch *e, uint32_t event,
                                   const struct trace_sample *sample, bool *passes);
/* Sets *whole: no filter leaves out samples of the thread, the epoch's id. */
struct error *sample_filter_whole_thread(struct sample_filter *f, const struct epoch *e, uint32_t thread, bool *whole);
/* False if every sample passes, so that there is no need to call sample_filter_sample(). */
static inline bool sample_filter_is_enabled(const struct sample_filter *f)
{
    return f->enabled.count;
}
/* Call after a record was loaded into the epoch: forgets the answers that it may have changed. */
void sample_filter_record(struct sample_filter *f, const struct trace_record *rec);
void sample_filter_end_epoch(struct sample_filter *f);
/* Call after the last sample: returns an error if the trace could not answer a filter for any of them. */
struct error *sample_filter_check(const struct sample_filter *f);
/* Call if no sample passed: returns the error that says because of which filter, and what there is. Never NULL. */
struct error *sample_filter_nothing(const struct sample_filter *f);

#endif
