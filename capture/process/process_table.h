/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of processes: who is there, by number, and what each has mapped. It is kept by
 * processes.c, which applies events to it, and filled from /proc by processes_proc.c; both
 * tell the sampler through it.
 */
#ifndef CAPTURE_PROCESS_PROCESS_TABLE_H
#define CAPTURE_PROCESS_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/binary/modules.h"
#include "capture/process/filter.h"
#include "capture/process/process.h"
#include "capture/process/process_sampling.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"

struct processes_options {
    struct sampler *sampler; /* NULL: only look, configure nothing (pycap info) */
    struct tables *tables;   /* NULL: no unwind tables */
    bool whole_host;         /* every Python process; else those selected */
    bool follow;             /* children of selected processes too */
    bool include_non_python; /* processes without an interpreter that can be walked, too */
    const struct filter *filter; /* NULL: all pass */
};

/*
 * Callbacks for owners of notes by slot. `ended` comes before a process is dropped (its end, or an exec), and its slot given
 * to another; `threads_forgotten` before its threads are numbered anew. NULL where nothing is to be called.
 */
struct processes_events {
    void (*mapped)(void *ctx, struct process *p, struct code_mapping *m);
    void (*ended)(void *ctx, struct process *p, uint64_t time_ns);
    void (*renamed)(void *ctx, struct process *p, struct thread *t, uint64_t time_ns);
    void (*threads_forgotten)(void *ctx, struct process *p);
    void *ctx;
};

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

struct processes {
    struct processes_options options;
    struct processes_events events;
    struct modules *modules;
    struct process_sampling sampling;
    struct map by_tgid; /* -> index of live */
    VEC(struct process *) live;
    uint32_t slot_count;       /* slots that were ever given */
    VEC(uint32_t) free_slots;
    struct processes_counts counts; /* those of `sampling` aside */
    uint64_t filtered_ns; /* when all were last held against the filter */
    bool missed;          /* events were lost since /proc was read */
};
struct error *processes_create(const struct processes_options *options, struct modules *modules, struct processes **out);
void processes_destroy(struct processes *p);
void processes_set_events(struct processes *p, const struct processes_events *events);
struct processes_counts processes_counts(const struct processes *p);

/* NULL: there is none with this number. */
struct process *processes_find(struct processes *p, uint32_t tgid);
/* All processes, for iteration: NULL at the end. Those that have ended a moment ago are among them. */
struct process *processes_next(struct processes *p, uint32_t *cursor);
/*
 * A new process in place of the one that was known under the number, which ends. It is known by number and time only;
 * `*out` belongs to the table.
 */
struct error *processes_begin(struct processes *p, uint32_t tgid, uint64_t time_ns, struct process **out);
/* Takes a process out of the table, and frees it. */
void processes_drop(struct processes *p, struct process *process, uint64_t time_ns);
/*
 * Adds a copy of a mapping unless it is there: both /proc and the side-band report it. Looks at what is mapped, and at
 * whether that makes the process one to sample.
 */
struct error *processes_map(struct processes *p, struct process *process, const struct code_mapping *mapping);
/* Looks at the mappings of a process that were not looked at, since it was not selected. */
struct error *processes_look(struct processes *p, struct process *process);
/* Whether samples of the process belong into the trace: it is selected, and Python or of interest anyway. */
bool processes_wants(const struct processes *p, const struct process *process);
/* See process_sampling_configure(). Call when a sample came of a process that is not `configured`. */
struct error *processes_configure(struct processes *p, struct process *process);

#endif
