/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From trace files to one output: chooses the consumers that the output takes, and runs a pass over the inputs.
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
