/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns samples into records of the trace: interns frames and stacks, joins Python and
 * native frames, and writes processes, threads and modules when an epoch first refers to
 * them. Resolves no names of functions. Times are CLOCK_MONOTONIC, in nanoseconds.
 */
#ifndef CAPTURE_TRACE_TRACE_BUILDER_H
#define CAPTURE_TRACE_TRACE_BUILDER_H

#include <stdint.h>

#include "capture/trace/trace_builder_options.h"
#include "formats/trace/trace.h"

struct trace_builder;
struct error *trace_builder_create(const struct trace_builder_options *options, struct trace_builder **out);
void trace_builder_destroy(struct trace_builder *b);
/* Writes the records that begin an epoch: clocks, host, options, events. Ends the epoch before it, if there is one. */
struct error *trace_builder_begin_epoch(struct trace_builder *b, uint64_t time_ns);
/* Continues in another file, which is complete in itself. Call trace_builder_end() on the previous file first. */
struct error *trace_builder_next_file(struct trace_builder *b, struct trace_writer *writer, uint64_t time_ns);
/* Continues in the same file, with an epoch that depends on none before it: what a file has once is written again. */
struct error *trace_builder_next_part(struct trace_builder *b, uint64_t time_ns);
/* The callbacks by which the table of processes reports changes to the builder. */
struct processes_events trace_builder_process_events(struct trace_builder *b);
/* Handles a message of the sampler: the contents of a code object. */
struct error *trace_builder_code(struct trace_builder *b, const struct wire_code *message, uint32_t len_bytes);
/*
 * Handles a message of the sampler: writes a sample, and what it refers to. Trouble with one sample is counted as a
 * loss.
 */
struct error *trace_builder_sample(struct trace_builder *b, const struct wire_sample *sample, uint32_t len_bytes);
/*
 * Whether samples are left out from here on, and counted as reader_slow, because the reader of the pipe that is written to is
 * slow. What else is recorded is written all the same.
 */
void trace_builder_drop_samples(struct trace_builder *b, bool drop);
/* Opens the perf map files of generated code while their processes live. Call periodically; it paces itself. */
void trace_builder_hold_perf_maps(struct trace_builder *b);
/* Writes the perf map files of all processes. Call before trace_builder_losses() and the end of a file. */
struct error *trace_builder_perf_maps(struct trace_builder *b, uint64_t time_ns);
/* Writes a META record: a fact about the capture that was not known at its start. */
void trace_builder_meta(struct trace_builder *b, const char *key, const char *value);
/* Writes that the period of an event changes at `time_ns`. `why` is a short text for the reader of the trace. */
void trace_builder_period(struct trace_builder *b, uint32_t event, uint64_t time_ns, uint64_t period, const char *why);
/* Returns how many samples of an event from a CPU have been discarded so far because their process is not recorded. */
uint64_t trace_builder_unwanted(const struct trace_builder *b, uint32_t event, uint32_t cpu);
/* Returns what these count together, in the event's unit, where each sample carries a value. */
uint64_t trace_builder_unwanted_value(const struct trace_builder *b, uint32_t event, uint32_t cpu);
/* The samples of an event from a CPU that the builder was given so far, whatever became of them; of a wait its beginning. */
uint64_t trace_builder_handled(const struct trace_builder *b, uint32_t event, uint32_t cpu);
/* The samples of all kinds in the file so far, as its END counts them. */
uint64_t trace_builder_file_samples(const struct trace_builder *b);
/* Writes what the clocks say now. */
void trace_builder_clock(struct trace_builder *b);
/*
 * Writes which processes have ended: they are in the table for a moment longer, and not all will be told of later. It may be said
 * twice.
 */
void trace_builder_exits(struct trace_builder *b);
/* Writes the record that ends a file. `reason` is an enum trace_end_reason, `lost` the number of samples lost. */
void trace_builder_end(struct trace_builder *b, uint64_t time_ns, uint32_t reason, uint64_t lost);

struct trace_builder_counts trace_builder_counts(const struct trace_builder *b);
/* The samples of one event that have been written, over all files. */
uint64_t trace_builder_event_samples(const struct trace_builder *b, uint32_t event);
/* What these count together, in the event's unit, where each sample carries a value. */
uint64_t trace_builder_event_value(const struct trace_builder *b, uint32_t event);

/*
 * Returns the bytes that known code objects take; the second function forgets them, and the sampler must send them
 * again.
 */
uint64_t trace_builder_codes_bytes(const struct trace_builder *b);
void trace_builder_forget_codes(struct trace_builder *b);
/* See codes_limit(). */
struct error *trace_builder_limit_codes(struct trace_builder *b, uint64_t most);
/* Returns how the trace uses a module so far. */
enum module_use trace_builder_module_use(const struct trace_builder *b, const struct module *m);

#endif
