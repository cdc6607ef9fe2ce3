/* SPDX-License-Identifier: Apache-2.0 */
/* The summary as consumers of a pass: one gathers facts with every output, one prints them as an output. */
#ifndef SYMBOLIZE_SUMMARY_SUMMARY_CONSUMER_H
#define SYMBOLIZE_SUMMARY_SUMMARY_CONSUMER_H

#include <stdio.h>

#include "symbolize/pass/consumer.h"
#include "symbolize/summary/summary.h"

/* The state is a struct summary, which the consumer destroys. */
extern const struct consumer summary_consumer;
/* The same, but gathers only how complete the files are: for outputs to which no filter applies. */
extern const struct consumer summary_files_consumer;

/* The state of the consumer that prints the summary at the end; it stays the caller's. */
struct summary_output {
    struct summary *summary;
    const struct resolver *resolver;
    bool verbose, json;
    const char *exporter; /* for JSON: what wrote it */
    FILE *out;
};
extern const struct consumer summary_print_consumer;
/* Prints the verdict in short. */
extern const struct consumer verdict_consumer;

/* The summary for an emitter's options. Both are borrowed. */
struct summary_for_emitter {
    struct emit_summary emit;
    struct summary *summary;
    const struct resolver *resolver;
};
void summary_for_emitter_init(struct summary_for_emitter *s, struct summary *summary, const struct resolver *resolver);

#endif
