/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the host as the side-band tells of them, and which of them are
 * sampled. A process here is an address space: an exec makes a new one. Events are
 * applied in order of time; /proc is read at the start, and again when something was
 * missed.
 */
#ifndef CAPTURE_PROCESS_PROCESSES_H
#define CAPTURE_PROCESS_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/process/filter.h"
#include "capture/binary/code_mappings.h"
#include "capture/binary/modules.h"
#include "capture/trace/perf_map_file.h"
#include "capture/sampler/sampler.h"
#include "capture/sampler/sideband.h"
#include "capture/binary/tables.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/cpython/thread_name.h"

struct thread {
    uint32_t tid;
    char name[17];
    bool renamed; /* since it was written into the trace */
    uint64_t handle;   /* its pthread handle; 0: Python does not know it */
    char *python_name; /* NULL: unknown */
    uint64_t name_due_ns; /* when to look for it again */
    uint32_t name_wait_ms;
    uint64_t trace_epoch;
    uint32_t trace_id;
};

/* What the trace builder keeps with a process; it goes with the process. */
struct process_codes {
    struct intern keys; /* {address, fingerprint} */
    VEC(uint32_t) index; /* by key's id: index in struct codes, or CODES_NONE */
};
struct process_stacks {
    uint64_t epoch;    /* the epoch the ids below belong to */
    struct intern keys;  /* Python entries of a stack */
    VEC(uint32_t) stack; /* by key's id: stack id in the trace */
};

struct process {
    uint32_t tgid, parent_tgid, ns_tgid;
    uint64_t start_boottime_ns; /* 0: not known yet */
    uint64_t exec_generation;
    bool bound;                 /* the two above come from a sample */
    char comm[17];
    char *exe;
    bool in_scope;              /* among those asked for: all, or by number, or a child */
    bool passes;                /* the filter, when last looked */
    bool selected;              /* both: to be sampled if it is Python */
    bool forbidden;             /* /proc does not show its mappings: those it had at the start are not known */
    bool leader_exited;         /* its first thread is gone; others may run */
    uint64_t ended_ns;          /* 0: it lives */
    struct code_mappings mappings;   /* executable ones as they are now */
    struct map thread_index;      /* tid -> index */
    VEC(struct thread) threads;
    /* the interpreter, when one was found */
    struct module *python;
    uint64_t python_bias;
    bool glibc;
    bool switches_stacks;       /* greenlet is mapped */
    struct py_name_hints name_hints;
    struct py_asyncio asyncio;  /* of the module _asyncio, wherever it is */
    bool configured;            /* the sampler has it */
    bool counted;               /* among the Python processes */
    uint64_t since_ns;          /* its fork or exec; 0: it was there already */
    uint64_t python_since_ns;   /* its interpreter was mapped; 0: it was there already */
    uint32_t layout_index;
    uint64_t sample_count;
    uint64_t trace_epoch;
    uint32_t trace_id;
    struct process_codes codes;
    struct process_stacks stacks;
    struct process_stacks native; /* keys: native frames of a stack */
    struct perf_map_file perf_map;
    bool mappings_dirty;
    uint32_t mapping_start, mapping_count; /* its place in the sampler's array of mappings */
};

struct processes_options {
    struct sampler *sampler; /* NULL: only look, configure nothing (pycap info) */
    struct tables *tables;   /* NULL: no unwind tables */
    bool whole_host;                /* every Python process; else those selected */
    bool follow;             /* children of selected processes too */
    bool include_non_python;                /* processes without an interpreter that can be walked, too */
    const struct filter *filter; /* NULL: none */
};

/* Told before a process is dropped (end, or exec), at renames and new mappings: the trace builder writes it down. */
struct processes_events {
    void (*mapped)(void *ctx, struct process *p, struct code_mapping *m);
    void (*ended)(void *ctx, struct process *p, uint64_t time_ns);
    void (*renamed)(void *ctx, struct process *p, struct thread *t, uint64_t time_ns);
    void *ctx;
};

struct processes;
struct error *processes_create(const struct processes_options *options, struct modules *modules, struct processes **out);
void processes_destroy(struct processes *p);
void processes_set_events(struct processes *p, const struct processes_events *events);
/* Reads all processes of the host from /proc (all: false: only `pids`, which become selected). */
struct error *processes_scan(struct processes *p, const uint32_t *pids, uint32_t pid_count);
/* Reads one process from /proc, which becomes selected; one that was known under the number is replaced. NULL: gone. */
struct error *processes_add(struct processes *p, uint32_t tgid, uint64_t time_ns, struct process **out);
/*
 * Where the process's interpreter has what the frame walk begins with, written over those members of `out`; false when it
 * has no interpreter that can be walked.
 */
bool process_python(const struct process *p, struct wire_process *out);
/* Applies a side-band event. */
struct error *processes_apply(struct processes *p, const struct sideband_event *e);
/*
 * The process a sample belongs to: binds its identity, or starts a new one when the sample's shows that an exec or a
 * reuse of the pid was missed. NULL when it cannot be known any more.
 */
struct error *processes_of_sample(struct processes *p, const struct wire_sample *s, struct process **out);
/* Whether samples of the process belong into the trace: it is selected, and Python or of interest anyway. */
bool processes_wants(const struct processes *p, const struct process *process);
/*
 * Hands the process to the sampler, as far as it is known. One that is not selected is not; without a sampler it is only
 * counted. Call when a sample came of a process that is not `configured`.
 */
struct error *processes_configure(struct processes *p, struct process *process);
/* Tells the sampler of mappings that have changed. Call when all that has come is applied. */
struct error *processes_publish(struct processes *p, uint64_t time_ns);
/* Whether there is something to tell: most times there is not, and then no clock need be read. */
bool processes_need_publishing(const struct processes *p);
/* Reads from /proc what lost events would have told, if any were lost. Call now and then. */
struct error *processes_rescan(struct processes *p, uint64_t time_ns);
/* What is kept to tell code objects apart. */
uint64_t processes_codes_bytes(const struct processes *p);
/* The contents of code objects are forgotten. */
void processes_forget_codes(struct processes *p);
struct process *processes_find(struct processes *p, uint32_t tgid);
/* The thread; made on first sight. NULL: out of memory. */
struct thread *process_thread(struct process *p, uint32_t tid);
/* Finds out which followed processes have gone, or moved, without an event having said so. Call now and then. */
struct error *processes_reap(struct processes *p, uint64_t time_ns);
/*
 * The path of an executable mapping whose file could not be opened, so that nobody knows what it is; NULL: none. Only
 * where they were looked at: in processes that are selected.
 */
const char *process_unopened(const struct process *p);
/* All processes, for iteration: NULL at the end. Those that have ended a moment ago are among them. */
struct process *processes_next(struct processes *p, uint32_t *cursor);

struct processes_counts {
    uint32_t python;      /* configured now */
    uint64_t seen_python; /* ever */
    uint64_t refused;     /* interpreters that cannot be served */
    uint64_t gone;        /* vanished while being read */
    uint64_t forbidden;   /* selected ones whose mappings may not be read */
    uint64_t lost;        /* side-band events the kernel dropped */
    uint64_t late_ticks;  /* of Python processes, before they were known */
    uint64_t loaded_ns;   /* when a process that is sampled last mapped code */
};
struct processes_counts processes_counts(const struct processes *p);

#endif
