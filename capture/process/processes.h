/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the host as the side-band reports them, and which of them are sampled. A
 * process here is an address space: an exec makes a new one. Events are applied in order of
 * time; /proc is read at the start, and again when something was missed.
 */
#ifndef CAPTURE_PROCESS_PROCESSES_H
#define CAPTURE_PROCESS_PROCESSES_H

#include "capture/process/process_table.h"
#include "capture/process/processes_proc.h"
#include "capture/sampler/sideband.h"

/* Applies a side-band event. */
struct error *processes_apply(struct processes *p, const struct sideband_event *e);
/*
 * The process a sample belongs to: binds its identity, or starts a new one when the sample's shows that an exec or a
 * reuse of the pid was missed. NULL when it cannot be known any more.
 */
struct error *processes_of_sample(struct processes *p, const struct wire_sample *s, struct process **out);
/* Tells the sampler of mappings that have changed. Call when all that has come is applied. */
struct error *processes_publish(struct processes *p, uint64_t time_ns);
/* Whether there is something to tell: most times there is not, and then no clock need be read. */
bool processes_need_publishing(const struct processes *p);
/* Finds out which followed processes have gone, or moved, without an event having said so. Call now and then. */
struct error *processes_reap(struct processes *p, uint64_t time_ns);

#endif
