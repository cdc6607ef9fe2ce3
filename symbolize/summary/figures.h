/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How complete a recording is, in a few figures. The verdict, --strict and --json all take them from here, so they
 * never differ.
 */
#ifndef SYMBOLIZE_SUMMARY_FIGURES_H
#define SYMBOLIZE_SUMMARY_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/trace/trace.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/summary/summary.h"

/* Some of all. */
struct share {
    uint64_t part, whole;
};

struct loss_row; /* symbolize/summary/summary_data.h */

struct figures {
    uint64_t sample_count;   /* samples that passed the filters */
    uint64_t recorded_count; /* samples in the files, before any filter */
    /* What was lost, by enum loss_class: ticks of the event where the sample is missing, else samples or facts. */
    uint64_t lost[LOSS_CLASS_retired + 1];
    struct share lost_samples; /* that are in no file, of all that should be; see figures_loss_of_recorded() */
    /*
     * The same as CPU time, where that is what is lost: recordings without BPF have samples of different weights, and their losses
     * are sampling periods. lost_samples.whole counts periods then, too. 0 of 0: samples are lost, not time.
     */
    struct share lost_ns;
    uint64_t children_ns; /* CPU time of children that nobody saw, beside all this: it may be none of Python */
    /*
     * Stacks that are whole. Python: of the samples that have a Python stack or should. A thread that never ran Python
     * and the first moments of a process count for nothing.
     */
    struct share python, native, join, kernel;
    struct share no_python;                   /* samples of threads without a Python thread state */
    struct share named_samples;               /* every native frame has a name */
    struct share named_native, named_python;  /* frames, added up over samples */
    struct share parts;                       /* facts that are missing (LOSS_CLASS_part), beside the samples */
    struct share interpreter;                 /* of the main event's value: in the interpreter itself */
    uint32_t main_event;                      /* of the model: time, or else the first event */
    bool is_damaged;                          /* a file is damaged, or ends before the recorder ended it */
    bool is_newer;                            /* a file has records that this version does not know */
};

/*
 * How much of a loss befell what is recorded, about. Ticks are skipped on all CPUs, whoever runs there; the part of others
 * is by how the ticks that came fell.
 */
uint64_t figures_loss_of_recorded(const struct summary *s, const struct loss_row *row);

/* `r` may be NULL: then nothing was resolved, and figures about stacks are 0 of 0. */
void figures_of(const struct summary *s, const struct resolver *r, struct figures *out);

#endif
