/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the table of processes up to date from side-band events and samples, and decides
 * which processes are sampled. A process here is an address space: an exec makes a new one.
 * Events are applied in order of time. /proc is read at the start, and again when events were
 * lost.
 */
#ifndef CAPTURE_PROCESS_PROCESSES_H
#define CAPTURE_PROCESS_PROCESSES_H

#include "capture/process/process_table.h"
#include "capture/process/processes_proc.h"
#include "capture/process/processes_rescan.h"
#include "capture/sampler/sideband.h"

/* Applies one side-band event. Events must come in order of time. */
struct error *processes_apply(struct processes *p, const struct sideband_event *e);
/*
 * Whether the event should be applied soon: it is about a process that is sampled, or that may have to be. Others, and
 * names, are as good when they are applied later, with the samples before and behind them.
 */
bool processes_matters(struct processes *p, const struct sideband_event *e);
/*
 * Whether each process that was asked for is known to be a Python already, so that no event of other processes can begin one.
 * False where this is not found out in a moment.
 */
bool processes_are_known(const struct processes *p);
/*
 * Finds the process that a sample belongs to. The sample carries the process's identity: the first one sets it in the
 * table; a different one shows that an exec or a reuse of the pid was missed, and begins a new process. `*out` is NULL
 * when the process has ended and cannot be identified any more.
 */
struct error *processes_of_sample(struct processes *p, const struct wire_sample *s, struct process **out);
/* Passes changed mappings on to the sampler. Call once all pending events are applied. */
struct error *processes_publish(struct processes *p, uint64_t time_ns);
/* Whether processes_publish() has work to do. Mostly it has not, and the caller saves reading the clock. */
bool processes_need_publishing(const struct processes *p);
/* When processes_publish() has to be called next, CLOCK_MONOTONIC; UINT64_MAX: it has nothing to do. */
uint64_t processes_publish_due(const struct processes *p);
/* Finds processes that ended, or changed cgroup, without an event that says so. Call periodically; it paces itself. */
struct error *processes_reap(struct processes *p, uint64_t time_ns);

#endif
