/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From looks at the tasks of a process to samples of the event task-wait: each stands for time that a task has waited.
 *
 * A look says what each task waits in; it stands for half of the time since the look before, and half of that until the next
 * one. So a wait is right to within half of that time at either end; one that is shorter is met with a chance that grows with
 * its length, and sums over many are right. A task that runs waits for nothing, and has no sample.
 *
 * The stack of a sample is the chain of tasks that await each other: the task's own coroutines are innermost, behind them
 * those of the task that awaits it, and so on. A stack that the process had not had before is handed on at once, while its
 * code can still be read. Else a task's time adds up until it waits elsewhere, is gone, or a piece is full.
 *
 * Samples are messages as the sampler sends them, with WIRE_TASK (bpf/wire.h).
 */
#ifndef CAPTURE_ASYNCIO_TASK_WAITS_H
#define CAPTURE_ASYNCIO_TASK_WAITS_H

#include <stdint.h>

#include "capture/asyncio/task_reader.h"
#include "capture/host/quotas.h"
#include "formats/base/err.h"

/* Takes a sample, which is the callee's for the time of the call. */
typedef struct error *(*task_waits_fn)(void *ctx, const struct wire_sample *sample, uint32_t len_bytes);

struct task_waits_options {
    uint32_t event;        /* number of the event that the samples are of */
    uint64_t piece_ns;     /* a task that waits on has a sample each so often; some of them after half of that */
    struct quotas *quotas; /* borrowed: what names of tasks may take. NULL: no limit */
    task_waits_fn put;
    void *ctx;
};

/* The process that a table is of. */
struct task_owner {
    uint32_t tgid, slot;
    uint64_t life; /* as in struct process: no other process has that number */
};

struct task_waits;
struct error *task_waits_create(const struct task_waits_options *options, struct task_waits **out);
/* Accepts NULL. Hands on nothing. */
void task_waits_destroy(struct task_waits *w);

/*
 * Takes what a look has found. The one before the first look at a process counts as made at `since_ns`, CLOCK_MONOTONIC, when
 * there were no tasks. Tasks that the table lacks have ended, if the look was complete.
 */
struct error *task_waits_look(struct task_waits *w, const struct task_owner *owner, const struct task_table *table,
                              uint64_t since_ns);
/* Until `time_ns` nothing has changed since the last look at this process: it is as if another one had found the same. */
void task_waits_still(struct task_waits *w, uint64_t life, uint64_t time_ns);
/* The process has ended at `time_ns`: hands on what its tasks have waited, and forgets it. */
struct error *task_waits_end(struct task_waits *w, uint64_t life, uint64_t time_ns);
/* Hands on what all tasks have waited until the last look at each: for a file that ends at `time_ns`. No sample is of later. */
struct error *task_waits_cut(struct task_waits *w, uint64_t time_ns);

/* How many tasks wait, as of the last looks; and the most that did at once. */
uint64_t task_waits_count(const struct task_waits *w);
uint64_t task_waits_most(const struct task_waits *w);
/* Returns the bytes of memory in use. */
uint64_t task_waits_bytes(const struct task_waits *w);

#endif
