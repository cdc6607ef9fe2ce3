/* SPDX-License-Identifier: Apache-2.0 */
/* Writes exact accounts beside the samples: what became of ticks, and where the time of threads went. */
#ifndef CAPTURE_TRACE_TRACE_ACCOUNTS_H
#define CAPTURE_TRACE_TRACE_ACCOUNTS_H

#include "capture/trace/trace_parts.h"

/* Writes how often an event ticked on each CPU, and what became of the ticks. `ticks` has `count` CPUs. */
void trace_builder_ticks(struct trace_builder *b, uint32_t event, uint64_t time_ns, const struct sampler_ticks *ticks,
                         uint32_t count);
/*
 * Writes where the time of a thread went since it was last written, up to its last switch. With `until_ns` up to then: what
 * it does since that switch counts, too. Does nothing when the process is not recorded.
 */
struct error *trace_builder_thread(struct trace_builder *b, const struct wire_thread *thread, uint64_t until_ns);
/*
 * The same for a thread that has ended: it is forgotten. Its times are left out, and counted as a loss, when its process has
 * ended more threads than one process may, or has executed another program in an epoch before.
 */
struct error *trace_builder_thread_ended(struct trace_builder *b, const struct wire_thread *thread);
/* A process is about to be dropped: remembers it for times of its threads that come late. */
void trace_builder_keep_former(struct trace_builder *b, const struct process *p, uint64_t ended_ns);
/* Forgets all of those: their ids are those of an epoch. */
void trace_builder_forget_formers(struct trace_builder *b);
/* Writes what a thread of a recorded process did at `time_ns`; since_ns 0: it runs, or it is not known since when. */
struct error *trace_builder_thread_state(struct trace_builder *b, struct process *p, uint32_t tid, uint64_t time_ns,
                                         enum trace_kernel_state state, uint64_t since_ns);
/* Counts the waiting time that no sample stands for as a loss. Call when all threads have been written for the last time. */
void trace_builder_count_unwritten(struct trace_builder *b);

/* Of `count` ticks that nobody took, as many as are due to what is recorded, by the accounts of ticks that have been written. */
uint64_t trace_builder_own_ticks(const struct trace_builder *b, uint32_t event, uint64_t count);

#endif
