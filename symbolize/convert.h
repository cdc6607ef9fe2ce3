/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts trace files to one output: chooses the consumers that the output needs and runs a pass over the inputs.
 */
#ifndef SYMBOLIZE_CONVERT_H
#define SYMBOLIZE_CONVERT_H

#include <stdbool.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/compare/gate.h"
#include "symbolize/options.h"
#include "symbolize/pass/parts.h"

struct live_feed;

/* One of them. */
struct convert_output {
    FILE *file;              /* the caller closes it */
    struct live_feed *live;  /* for OUTPUT_LIVE */
    struct part_sink *parts; /* for an emitter, of an output that is split */
};

struct convert_outcome {
    bool incomplete; /* --strict: more is missing than allowed; `trouble` says what */
    bool damaged;    /* parts of a trace could not be read; for emitters */
    bool abandoned; /* live: a thread is still at work, with the options; nothing is left but to end the process */
    bool differs;    /* unwind-check: a stack differs from that of a witness */
    enum gate_answer verdict; /* diff: of all rules; undecided only if that fails */
};

/*
 * Writes the output that the options select to `out`, and to `trouble`, which the caller closes, a few lines about damage
 * and what --strict asked for.
 */
struct error *convert_run(const struct options *o, const struct convert_output *out, FILE *trouble,
                          struct convert_outcome *outcome);

#endif
