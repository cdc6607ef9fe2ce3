/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the inputs: reads record after record into the epoch, lets samples through the filters, resolves them
 * if a consumer wants stacks, and hands each record and sample to every consumer in turn. Memory is bounded by an epoch
 * and by what consumers keep, not by samples.
 */
#ifndef SYMBOLIZE_PASS_PASS_H
#define SYMBOLIZE_PASS_PASS_H

#include <stddef.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "symbolize/pass/consumer.h"
#include "symbolize/pass/progress.h"
#include "symbolize/pass/sample_filter.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/trace/file_limits.h"
#include "symbolize/trace/input.h"
#include "symbolize/trace/process_names.h"

struct pass_consumer {
    const struct consumer *consumer;
    void *state;
};

struct pass {
    const struct input *inputs; /* borrowed */
    size_t input_count;
    struct resolver *resolver;  /* borrowed; may be NULL if no consumer wants stacks */
    struct file_limits *limits; /* borrowed; NULL: none */
    struct progress *progress;  /* borrowed; NULL: nobody is told how far it is */
    struct process_names *names; /* own_names, or borrowed: what an earlier pass found out */
    /* Called when an epoch has ended; may give the pass another resolver. NULL: nothing is called. */
    struct error *(*renew)(void *own, struct pass *p);
    void *renew_own;
    bool renewed; /* it has given another one */
    struct sample_filter filter;
    VEC(struct pass_consumer) consumers;
    /* State while it runs. */
    struct process_names own_names;
    unsigned wants; /* of all consumers: enum consumer_wants */
    uint64_t passed_count; /* samples that passed the filters of samples */
    struct epoch epoch;
    struct consumer_file file;
};

/* All arguments are borrowed until pass_deinit(). Call that after an error too. */
struct error *pass_init(struct pass *p, const struct input *inputs, size_t input_count,
                        const struct sample_filter_options *filters, struct resolver *resolver);
void pass_deinit(struct pass *p);
/* Adds a consumer; they are called in this order. Takes ownership of `state`, even if it fails. */
struct error *pass_add(struct pass *p, const struct consumer *consumer, void *state);
/*
 * Reads all inputs and ends all consumers. Call once. If the filters left nothing, that is an error, which says why, and
 * consumers are not ended.
 */
struct error *pass_run(struct pass *p);

#endif
