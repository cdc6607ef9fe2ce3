/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sampler is told of processes: where the interpreter is and how its frames are
 * walked, the flags that its libraries bring, and the mappings for unwinding.
 */
#ifndef CAPTURE_PROCESS_PROCESS_SAMPLING_H
#define CAPTURE_PROCESS_PROCESS_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/binary/extents.h"
#include "capture/binary/tables.h"
#include "capture/process/process.h"
#include "capture/sampler/sampler.h"

/* Where the sampler has the mappings of a process. */
struct sampled_mappings {
    struct process *process; /* NULL: there is no such process */
    bool changed;            /* since they were laid */
    uint32_t start, count;   /* in the sampler's array */
};

/* Both pointers are borrowed and may be NULL: there is no sampler, or it has no unwind tables. */
struct process_sampling {
    struct sampler *sampler;
    struct tables *tables;
    struct wire_mapping *wire_mappings; /* the sampler's, NULL without tables */
    struct extents space;               /* in it */
    VEC(struct sampled_mappings) mappings; /* by slot */
    VEC(uint32_t) changed;                 /* slots */
    uint32_t python_count;  /* Python processes that are sampled now */
    uint64_t python_ever;   /* and ever */
    uint64_t late_ticks;    /* of Python processes, before they were known */
};
struct error *process_sampling_init(struct process_sampling *s, struct sampler *sampler, struct tables *tables);
void process_sampling_deinit(struct process_sampling *s);

/*
 * Hands the process to the sampler, as far as it is known. One that is not selected is left out; without a sampler it is
 * only counted.
 */
struct error *process_sampling_configure(struct process_sampling *s, struct process *p);
/* Not sampled any more: the filter leaves it out now. */
void process_sampling_stop(struct process_sampling *s, struct process *p);
/* Not sampled, and dropped after this: its slot will be another's. */
void process_sampling_drop(struct process_sampling *s, struct process *p, uint64_t time_ns);
/* Drops what the sampler handed on to this number by itself: at a fork, before it is known whether the child is sampled. */
void process_sampling_disinherit(struct process_sampling *s, uint32_t tgid);
/* A mapping has changed: the sampler's copy is laid anew by process_sampling_publish(). */
struct error *process_sampling_changed(struct process_sampling *s, struct process *p);
/* Lays the mappings that have changed. Call when all that has come is applied. */
struct error *process_sampling_publish(struct process_sampling *s, uint64_t time_ns);

#endif
