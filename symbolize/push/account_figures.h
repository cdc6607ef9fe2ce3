/* SPDX-License-Identifier: Apache-2.0 */
/* What a push has done, in figures, and the two ways to show them. */
#ifndef SYMBOLIZE_PUSH_ACCOUNT_FIGURES_H
#define SYMBOLIZE_PUSH_ACCOUNT_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/buf.h"
#include "symbolize/push/request.h"

enum account_trace {
    ACCOUNT_TRACE_DONE,
    ACCOUNT_TRACE_DAMAGED,    /* sent as far as it could be read */
    ACCOUNT_TRACE_UNREADABLE, /* nothing could be read of it */
    ACCOUNT_TRACE_GONE,       /* removed before it was sent */
};

enum {
    ACCOUNT_NAMES_MAX = 64,      /* of one kind of count; the last is "other" */
    ACCOUNT_NAME_BYTES = 64,
    ACCOUNT_TRACE_RESULTS = ACCOUNT_TRACE_GONE + 1,
};

/* Profiles, and the samples in them. */
struct account_sum {
    uint64_t profiles, samples;
};

struct account_count {
    char name[ACCOUNT_NAME_BYTES];
    struct account_sum sum; /* of retries and losses only one of the two */
};

struct account_counts {
    struct account_count data[ACCOUNT_NAMES_MAX];
    size_t count;
};

struct account_figures {
    struct account_sum accepted, repeated;
    uint64_t accepted_bytes; /* packed */
    struct account_counts refused, retries, lost, incomplete; /* the last two of the recorder: account_lost() */
    uint64_t traces[ACCOUNT_TRACE_RESULTS], trace_bytes, sent_before; /* the last: traces, by an earlier push */
    uint64_t backlog_traces, backlog_since_ns; /* CLOCK_REALTIME, as all times here; 0: none */
    uint64_t newest_sample_ns, answered_ns;
    bool sound; /* the last answer */
};

/* The text of --status. */
void account_put_status(const struct account_figures *f, struct buf *out);
/* The last lines of a push. */
void account_print_figures(const struct account_figures *f, const struct push_request *request, FILE *out);

#endif
