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

struct recorder_options {
    struct trace_writer *writer;
    const struct host *host;
    struct modules *modules;
    struct processes *processes;
    struct codes *codes;
    struct kallsyms *kallsyms;
    struct late_unwind *late_unwind; /* for what the sampler could not unwind; NULL: left as it is */
    bool snapshots;            /* copies of stacks go into the trace */
    bool any;                  /* processes that are not Python, too */
    bool all;                  /* the whole host, not a command or named processes */
    bool cmdline;              /* command lines are recorded */
    struct sampler_event_info event;
    uint64_t frequency_hz;
    const struct settings *settings; /* borrowed */
};

struct recorder;
struct error *recorder_create(const struct recorder_options *options, struct recorder **out);
void recorder_destroy(struct recorder *r);
/* What stands at the beginning of an epoch: clocks, host, options, events. Also begins the next epoch when one is due. */
struct error *recorder_begin_epoch(struct recorder *r, uint64_t time_ns);
/* Goes on in another file, complete in itself; the one before was ended. */
struct error *recorder_next_file(struct recorder *r, struct trace_writer *writer, uint64_t time_ns);
/* How the table of processes is to tell of changes. */
struct processes_events recorder_process_events(struct recorder *r);
struct error *recorder_code(struct recorder *r, const struct wire_code *message, uint32_t len_bytes);
struct error *recorder_sample(struct recorder *r, const struct wire_sample *sample, uint32_t len_bytes);
/* Symbols that the processes wrote of their generated code. Before the losses and the end of a file. */
struct error *recorder_perf_maps(struct recorder *r, uint64_t time_ns);
/* Losses so far, by reason: what has come since the call before is written. */
void recorder_losses(struct recorder *r, uint64_t time_ns, const uint64_t losses[LOSS_LIMIT]);
/* The period is another from now on. */
void recorder_period(struct recorder *r, uint64_t time_ns, uint64_t period, const char *why);
/* Samples that came from a CPU and turned out not to be wanted, so far. */
uint64_t recorder_unwanted(const struct recorder *r, uint32_t cpu);
void recorder_ticks(struct recorder *r, uint64_t time_ns, const struct sampler_ticks *ticks, uint32_t count);
void recorder_end(struct recorder *r, uint64_t time_ns, uint32_t reason, uint64_t lost);

/* Losses that were noticed in user space; add the sampler's own. */
const uint64_t *recorder_loss_counts(const struct recorder *r);

struct recorder_counts {
    uint64_t samples, python_complete, python_cut, no_python, processes;
};
struct recorder_counts recorder_counts(const struct recorder *r);

#endif
