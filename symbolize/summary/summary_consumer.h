/* SPDX-License-Identifier: Apache-2.0 */
/* The summary among a pass's consumers: it listens in on every output, and is one itself. */
#ifndef SYMBOLIZE_SUMMARY_SUMMARY_CONSUMER_H
#define SYMBOLIZE_SUMMARY_SUMMARY_CONSUMER_H

#include <stdio.h>

#include "symbolize/pass/consumer.h"
#include "symbolize/summary/summary.h"

/* The state is a struct summary, which is destroyed with it. */
extern const struct consumer summary_consumer;
/* The same, but gathers only how whole the files are: for outputs that let no samples through the filters. */
extern const struct consumer summary_files_consumer;

/* Prints the summary at the end. The state is this, and the caller's. */
struct summary_output {
    const struct summary *summary;
    const struct resolver *resolver;
    FILE *out;
};
extern const struct consumer summary_print_consumer;

#endif
