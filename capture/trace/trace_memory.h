/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory processes have: records beside the samples of events of memory, by which a reader can tell what the
 * samples stand for. Processes are read when they are first known, so that the first reading is older than the samples;
 * it is written only when there is a sample. Where no event of memory is recorded, nothing here does anything.
 */
#ifndef CAPTURE_TRACE_TRACE_MEMORY_H
#define CAPTURE_TRACE_TRACE_MEMORY_H

#include "capture/host/procfs_memory.h"
#include "capture/trace/trace_parts.h"

/* A sample of the event is about to be written. */
void trace_memory_sampled(struct trace_builder *b, struct process_note *n, uint32_t event);
/* Reads the processes that are due. Call when samples up to `time_ns` (now) have been written, and before sampling begins. */
struct error *trace_builder_read_memory(struct trace_builder *b, uint64_t time_ns);
/* Reads all that have samples, whether due or not: at the end of a file, while samples are still taken. */
struct error *trace_builder_read_all_memory(struct trace_builder *b, uint64_t time_ns);
void trace_memory_init(struct trace_memory *m, const struct event_list *events);
void trace_memory_deinit(struct trace_memory *m);

#endif
