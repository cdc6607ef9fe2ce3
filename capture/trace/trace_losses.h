/* SPDX-License-Identifier: Apache-2.0 */
/* Writes LOSS records: what was lost, and what the quotas of processes refused. Times are CLOCK_MONOTONIC, in ns. */
#ifndef CAPTURE_TRACE_TRACE_LOSSES_H
#define CAPTURE_TRACE_TRACE_LOSSES_H

#include <stdint.h>

#include "bpf/wire.h"
#include "capture/host/quotas.h"
#include "capture/process/process.h"
#include "capture/trace/trace_builder_options.h"
#include "formats/trace/trace.h"

struct trace_builder;
/*
 * Writes the losses since the previous call. `losses` are totals since the start by reason; `event_losses` are the part
 * of them that belongs to a single event, by event.
 */
void trace_builder_losses(struct trace_builder *b, uint64_t time_ns, const uint64_t losses[LOSS_LIMIT],
                          const uint64_t event_losses[WIRE_EVENT_MAX][LOSS_LIMIT]);
/*
 * Writes what the quotas of processes refused since the previous call, as losses of these processes. Call before
 * trace_builder_losses().
 */
void trace_builder_refusals(struct trace_builder *b, uint64_t time_ns);
/*
 * Returns the losses that user space noticed and that belong to no single event. The sampler's own losses are not in
 * it.
 */
const uint64_t *trace_builder_loss_counts(const struct trace_builder *b);
/* Adds to `losses` the losses that user space noticed among the samples of one event. */
void trace_builder_event_losses(const struct trace_builder *b, uint32_t event, uint64_t losses[LOSS_LIMIT]);
/* The refusals so far, the most frequent first; the array is the builder's. There may have been more of them. */
const struct refusal *trace_builder_most_refused(struct trace_builder *b, uint32_t *count);
/* How often the quotas of processes refused something, by kind. */
void trace_builder_refused(const struct trace_builder *b, uint64_t counts[QUOTA_COUNT]);
/* Writes what a process's quotas refused since the last call, as its losses. Call before the process is dropped. */
void trace_refusals_end(struct trace_builder *b, struct process *p, uint64_t time_ns);

#endif
