/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the asyncio tasks of which process are looked at, for the event task-wait: capture/asyncio/ reads them, and makes
 * samples of what it finds.
 *
 * A process is looked at once in a period, varied at random against lockstep with a program. Which processes have event loops
 * costs nothing to find out: their modules say whether asyncio is loaded. Where all loops of a process have slept since the
 * last look, nothing in them has changed, and nothing is read. A look that takes long makes the next one late: looks at one
 * process take a hundredth of a CPU at most, looks at all of them some more. What a sample stands for follows.
 */
#ifndef CAPTURE_SESSION_TASK_LOOKS_H
#define CAPTURE_SESSION_TASK_LOOKS_H

#include <stdint.h>

#include "capture/asyncio/task_waits.h"
#include "capture/process/processes.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"

struct task_looks_options {
    struct processes *processes; /* borrowed */
    uint32_t event;              /* number of the event that the samples are of */
    uint64_t period_ns;          /* between two looks at a process */
    double max_cpu;              /* share of a CPU that looks may take; 0: 0.05 */
    task_waits_fn put;
    void *ctx;
};

struct task_looks;
struct error *task_looks_create(const struct task_looks_options *options, struct task_looks **out);
/* Accepts NULL. */
void task_looks_destroy(struct task_looks *l);
void task_looks_set_period(struct task_looks *l, uint64_t period_ns);
/* From here on tasks wait in the recording. Call before the first of the functions below. */
void task_looks_begin(struct task_looks *l, uint64_t time_ns);
/* Looks at the processes that are due, for a moment. */
struct error *task_looks_run(struct task_looks *l, uint64_t time_ns);
/* When it is due next, CLOCK_MONOTONIC. */
uint64_t task_looks_due(const struct task_looks *l);
/* Hands on what all tasks have waited so far: for a file that ends at `time_ns`. */
struct error *task_looks_cut(struct task_looks *l, uint64_t time_ns);
/* Looks for the last time, and hands on all. */
struct error *task_looks_finish(struct task_looks *l, uint64_t time_ns);
/* Adds what was lost so far. Quotas count for themselves. */
void task_looks_losses(const struct task_looks *l, uint64_t losses[LOSS_LIMIT]);

struct task_looks_counts {
    uint64_t looks, still;  /* in all; of those, where nothing had run and nothing was read */
    uint64_t spent_ns;      /* in all of them */
    uint64_t waiting, most; /* tasks that wait now; that waited at once */
    uint64_t processes;     /* in which tasks waited */
    uint64_t too_old;       /* processes with an interpreter before 3.12 */
    uint64_t unknown;       /* processes whose tasks cannot be found */
};
struct task_looks_counts task_looks_counts(const struct task_looks *l);

#endif
