/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From trace files to one output: reads record after record, resolves the samples that
 * the options ask for, and hands them to the emitter. Memory is bounded by an epoch and
 * by the number of distinct frames and stacks, not by samples.
 */
#ifndef SYMBOLIZE_CONVERT_H
#define SYMBOLIZE_CONVERT_H

#include <stdbool.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "symbolize/options.h"

struct convert_outcome {
    bool incomplete; /* something was lost, damaged or left without a name */
    bool differs;    /* unwind-check: a stack is not what it should be */
};

/* Runs what the options ask for. `trouble` gets a few lines about damage; the caller closes both. */
struct error *convert_run(const struct options *o, FILE *out, FILE *trouble, struct convert_outcome *outcome);

#endif
