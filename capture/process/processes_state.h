/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the table of processes share, and nobody else includes. processes.c
 * keeps the table and applies events to it, processes_proc.c fills it from /proc,
 * processes_sampler.c tells the sampler of what is in it.
 */
#ifndef CAPTURE_PROCESS_PROCESSES_STATE_H
#define CAPTURE_PROCESS_PROCESSES_STATE_H

#include "capture/binary/extents.h"
#include "capture/process/processes.h"

struct processes {
    struct processes_options options;
    struct processes_events events;
    struct modules *modules;
    struct map by_tgid; /* -> index of live */
    VEC(struct process *) live;
    struct processes_counts counts;
    struct wire_mapping *wire_mappings; /* the sampler's, NULL without tables */
    struct extents mapping_space;
    uint64_t filtered_ns; /* when all were last held against the filter */
    VEC(uint32_t) dirty; /* processes whose mappings have changed */
    bool missed;         /* events were lost since /proc was read */
};

/*
 * A new process in place of the one that was known under the number, which ends. It is known by number and time only;
 * `*out` belongs to the table.
 */
struct error *processes_begin(struct processes *p, uint32_t tgid, uint64_t time_ns, struct process **out);
void process_select(struct process *process, bool in_scope, bool passes);

/* ---- processes_proc.c ---- */

/* A process that is there already, from /proc. One that goes meanwhile is no error: `*out` is NULL. */
struct error *processes_read(struct processes *p, uint32_t tgid, bool in_scope, uint64_t time_ns, struct process **out);

/* ---- processes_sampler.c ---- */

/* Whether the process has an interpreter whose frames can be walked. */
bool process_has_python(const struct process *process);
/*
 * For a process that begins otherwise than by the fork that the sampler saw: what it inherited then names an image that
 * may long be gone, and would be taken for what the sampler has learnt of this one.
 */
void processes_disinherit(struct processes *p, uint32_t tgid);
/* Adds a copy of a mapping unless it is there: told twice, by /proc and by the side-band. Looks at what is mapped. */
struct error *processes_map(struct processes *p, struct process *process, const struct code_mapping *mapping);
/* Finds the module behind a mapping of the process, and whether it makes the process one to sample. */
struct error *processes_look_at(struct processes *p, struct process *process, struct code_mapping *m);

#endif
