/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of trace_builder_create(): where it looks things up, and what it records. All pointers are borrowed. And
 * what a trace builder says of what it has done.
 */
#ifndef CAPTURE_TRACE_TRACE_BUILDER_OPTIONS_H
#define CAPTURE_TRACE_TRACE_BUILDER_OPTIONS_H

#include <stdint.h>

#include "capture/binary/modules.h"
#include "capture/host/host.h"
#include "capture/host/kallsyms.h"
#include "capture/process/processes.h"
#include "capture/sampler/sampler.h"
#include "capture/trace/settings_list.h"
#include "capture/trace/codes.h"
#include "capture/trace/late_unwind.h"
#include "capture/trace/source_table.h"
#include "formats/trace/trace.h"

struct trace_builder_options {
    struct trace_writer *writer;
    const struct host *host;
    struct modules *modules;
    struct processes *processes;
    struct codes *codes;
    struct kallsyms *kallsyms;
    struct source_table *sources;         /* asks what stat says of source files; NULL: nobody does */
    struct late_unwind *late_unwind; /* unwinds what the sampler could not; NULL: such stacks stay truncated */
    bool snapshots;                  /* write copies of stacks into the trace */
    bool include_non_python;         /* record processes that are not Python, too */
    bool whole_host;                 /* record the whole host, not a command or named processes */
    bool cmdline;                    /* record command lines */
    struct event_list events;        /* as the user requested them */
    const struct settings *settings; /* written as META records into each epoch */
};

/*
 * What has been written, over all files. `samples` are those of all events; `processes` those that have one, each once, however
 * many programs it executed. The summary of pysym counts in the same way.
 */
struct trace_builder_counts {
    uint64_t samples, processes;
    uint64_t python_complete, python_cut, no_python; /* by how the Python stack ends; without what was not sampled, such as blame */
    uint64_t newest_ns; /* CLOCK_MONOTONIC, of the newest sample; 0: there is none */
};

/* What the quotas of one process refused in all, of one kind. */
struct refusal {
    uint32_t tgid;
    uint64_t start_boottime_ns, exec_generation;
    char comm[17];
    uint32_t reason; /* number in losses.def */
    uint64_t count;
};

#endif
