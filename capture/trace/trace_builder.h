/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns samples into records of the trace: interns frames and stacks, computes the
 * join, defines processes, threads and modules where they are first referred to in an
 * epoch. Resolves nothing.
 */
#ifndef CAPTURE_TRACE_TRACE_BUILDER_H
#define CAPTURE_TRACE_TRACE_BUILDER_H

#include <stdint.h>

#include "capture/trace/codes.h"
#include "capture/host/host.h"
#include "capture/host/kallsyms.h"
#include "capture/binary/modules.h"
#include "capture/process/processes.h"
#include "capture/sampler/sampler.h"
#include "capture/session/settings.h"
#include "capture/trace/late_unwind.h"
#include "formats/trace/trace.h"

struct trace_builder_options {
    struct trace_writer *writer;
    const struct host *host;
    struct modules *modules;
    struct processes *processes;
    struct codes *codes;
    struct kallsyms *kallsyms;
    struct late_unwind *late_unwind; /* for what the sampler could not unwind; NULL: left as it is */
    bool snapshots;            /* copies of stacks go into the trace */
    bool include_non_python;                  /* processes that are not Python, too */
    bool whole_host;                  /* the whole host, not a command or named processes */
    bool cmdline;              /* command lines are recorded */
    struct sampler_event_info event;
    uint64_t frequency_hz;
    const struct settings *settings; /* borrowed */
};

struct trace_builder;
struct error *trace_builder_create(const struct trace_builder_options *options, struct trace_builder **out);
void trace_builder_destroy(struct trace_builder *b);
/* What stands at the beginning of an epoch: clocks, host, options, events. Also begins the next epoch when one is due. */
struct error *trace_builder_begin_epoch(struct trace_builder *b, uint64_t time_ns);
/* Goes on in another file, complete in itself; the one before was ended. */
struct error *trace_builder_next_file(struct trace_builder *b, struct trace_writer *writer, uint64_t time_ns);
/* How the table of processes is to tell of changes. */
struct processes_events trace_builder_process_events(struct trace_builder *b);
struct error *trace_builder_code(struct trace_builder *b, const struct wire_code *message, uint32_t len_bytes);
struct error *trace_builder_sample(struct trace_builder *b, const struct wire_sample *sample, uint32_t len_bytes);
/* Symbols that the processes wrote of their generated code. Before the losses and the end of a file. */
struct error *trace_builder_perf_maps(struct trace_builder *b, uint64_t time_ns);
/* Losses so far, by reason: what has come since the call before is written. */
void trace_builder_losses(struct trace_builder *b, uint64_t time_ns, const uint64_t losses[LOSS_LIMIT]);
/* The period is another from now on. */
void trace_builder_period(struct trace_builder *b, uint64_t time_ns, uint64_t period, const char *why);
/* Samples that came from a CPU and turned out not to be wanted, so far. */
uint64_t trace_builder_unwanted(const struct trace_builder *b, uint32_t cpu);
void trace_builder_ticks(struct trace_builder *b, uint64_t time_ns, const struct sampler_ticks *ticks, uint32_t count);
void trace_builder_end(struct trace_builder *b, uint64_t time_ns, uint32_t reason, uint64_t lost);

/* Losses that were noticed in user space; add the sampler's own. */
const uint64_t *trace_builder_loss_counts(const struct trace_builder *b);

struct trace_builder_counts {
    uint64_t samples, python_complete, python_cut, no_python, processes;
};
struct trace_builder_counts trace_builder_counts(const struct trace_builder *b);

#endif
