/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns samples into records of the trace: interns frames and stacks, computes the
 * join, defines processes, threads and modules where they are first referred to in an
 * epoch. Resolves nothing.
 */
#ifndef CAPTURE_TRACE_TRACE_BUILDER_H
#define CAPTURE_TRACE_TRACE_BUILDER_H

#include <stdint.h>

#include "capture/trace/trace_builder_options.h"
#include "formats/trace/trace.h"

struct trace_builder;
struct error *trace_builder_create(const struct trace_builder_options *options, struct trace_builder **out);
void trace_builder_destroy(struct trace_builder *b);
/* What stands at the beginning of an epoch: clocks, host, options, events. Also begins the next epoch when one is due. */
struct error *trace_builder_begin_epoch(struct trace_builder *b, uint64_t time_ns);
/* Goes on in another file, complete in itself; the one before was ended. */
struct error *trace_builder_next_file(struct trace_builder *b, struct trace_writer *writer, uint64_t time_ns);
/* The callbacks by which the table of processes reports changes to the builder. */
struct processes_events trace_builder_process_events(struct trace_builder *b);
struct error *trace_builder_code(struct trace_builder *b, const struct wire_code *message, uint32_t len_bytes);
struct error *trace_builder_sample(struct trace_builder *b, const struct wire_sample *sample, uint32_t len_bytes);
/* Opens the symbol files of generated code while their processes live. Call now and then. */
void trace_builder_hold_perf_maps(struct trace_builder *b);
/* Symbols that the processes wrote of their generated code. Before the losses and the end of a file. */
struct error *trace_builder_perf_maps(struct trace_builder *b, uint64_t time_ns);
/* A fact about the capture; what is not known at its start. */
void trace_builder_meta(struct trace_builder *b, const char *key, const char *value);
/*
 * Losses so far, by reason, and those of them that are of one event, by event: what has come since the call before is
 * written.
 */
void trace_builder_losses(struct trace_builder *b, uint64_t time_ns, const uint64_t losses[LOSS_LIMIT],
                          const uint64_t event_losses[WIRE_EVENT_MAX][LOSS_LIMIT]);
/* The period of an event is another from now on. */
void trace_builder_period(struct trace_builder *b, uint32_t event, uint64_t time_ns, uint64_t period, const char *why);
/* Samples of an event that came from a CPU and turned out not to be wanted, so far. */
uint64_t trace_builder_unwanted(const struct trace_builder *b, uint32_t event, uint32_t cpu);
void trace_builder_ticks(struct trace_builder *b, uint32_t event, uint64_t time_ns, const struct sampler_ticks *ticks,
                         uint32_t count);
void trace_builder_end(struct trace_builder *b, uint64_t time_ns, uint32_t reason, uint64_t lost);

/* Losses that were noticed in user space and are not of one event; add the sampler's own. */
const uint64_t *trace_builder_loss_counts(const struct trace_builder *b);
/* Losses of the samples of one event, likewise: adds them to `losses`. */
void trace_builder_event_losses(const struct trace_builder *b, uint32_t event, uint64_t losses[LOSS_LIMIT]);

struct trace_builder_counts trace_builder_counts(const struct trace_builder *b);

/* Bytes kept to tell code objects apart; and forgets them: they have to be met again. */
uint64_t trace_builder_codes_bytes(const struct trace_builder *b);
void trace_builder_forget_codes(struct trace_builder *b);
/* What the trace says of a module so far. */
enum module_use trace_builder_module_use(const struct trace_builder *b, const struct module *m);

#endif
