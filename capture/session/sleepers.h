/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of threads that wait although no switch told of it, or that have waited long without one: threads that slept
 * before the recording began, or before their process was followed, and waits of which no stack was taken.
 *
 * The kernel finds them, in passes over all threads, and says what only it knows: registers, kernel stack, thread pointer
 * (bpf/sampler_sleep.h). Memory is read from the process, by the walkers that the sampler uses. Nothing stops the thread;
 * but the sampler's entry of it shows afterwards whether it has run, and then what was read is dropped.
 *
 * Passes and reading take a bounded share of time. Waits that were found are handed to `waits` at once, so their
 * length is right even if their stacks are read later.
 */
#ifndef CAPTURE_SESSION_SLEEPERS_H
#define CAPTURE_SESSION_SLEEPERS_H

#include <stdint.h>

#include "capture/binary/tables.h"
#include "capture/process/processes.h"
#include "capture/sampler/sampler.h"
#include "capture/session/waits.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"

struct sleepers_options {
    struct sampler *sampler;     /* all borrowed */
    struct processes *processes;
    struct waits *waits;
    struct tables *tables;       /* NULL: native frames are found by frame pointers, or not at all */
    bool native;                 /* find native frames */
    uint32_t snapshot_bytes;     /* so much of the stack is part of the sample; 0: nothing */
    double max_cpu;              /* share of a CPU that reading may take; 0: half of one */
    bool at_once;                /* each thread's stack is wanted now: passes and reading take what they need */
};

struct sleepers;
struct error *sleepers_create(const struct sleepers_options *options, struct sleepers **out);
/* Accepts NULL. */
void sleepers_destroy(struct sleepers *s);
/* Does what is due. Call when all that the sampler has sent up to now is known to `waits`, and soon after the start. */
struct error *sleepers_run(struct sleepers *s, uint64_t time_ns);
/* When it is due next, CLOCK_MONOTONIC. */
uint64_t sleepers_due(const struct sleepers *s);
/* Looks for the last time, while the sampler still runs: at whatever waits without a stack for longer than a moment. */
struct error *sleepers_finish(struct sleepers *s, uint64_t time_ns);
/* Adds what was lost so far. */
void sleepers_losses(const struct sleepers *s, uint64_t losses[LOSS_LIMIT]);

#endif
