/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configures the sampler for each process: where its interpreter is and how to walk its
 * frames, flags that follow from its libraries, and its mappings for unwinding.
 */
#ifndef CAPTURE_PROCESS_PROCESS_SAMPLING_H
#define CAPTURE_PROCESS_PROCESS_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/binary/tables.h"
#include "capture/host/quotas.h"
#include "capture/process/layout_slots.h"
#include "capture/process/mapping_places.h"
#include "capture/process/process.h"
#include "capture/sampler/sampler.h"

/* Where the mappings of a process are in the sampler's array. */
struct sampled_mappings {
    struct process *process; /* NULL: no process has this slot */
    bool changed;            /* since they were copied there */
    bool queued;             /* the slot is in process_sampling.changed, maybe for a process that no longer is */
    bool lacks_number;       /* the tables had no number for one of its files */
    uint32_t place;          /* of places; 0: nowhere */
    uint64_t due_ns;         /* not to be copied again before */
    uint32_t layout;         /* index of its interpreter's layout, and one; 0: none */
    uint32_t rival_layout;   /* likewise, of the rival's */
    bool left_out;           /* the sampler had no room for the process, */
    bool no_layout;          /* or for that layout */
    bool listed;             /* the slot is in process_sampling.left_out */
};

/*
 * `sampler`, `tables` and `quotas` are borrowed. The first two are NULL before process_sampling_begin(), the second also
 * where the sampler does not unwind with tables.
 */
struct process_sampling {
    struct sampler *sampler;
    struct tables *tables;
    struct quotas *quotas;
    struct mapping_places places;
    VEC(struct sampled_mappings) mappings; /* by slot */
    VEC(struct wire_mapping) built; /* a list as it is to lie in the array */
    VEC(uint64_t) used_numbers;     /* a bit for each number of a file that some list has */
    bool lacks_numbers;
    uint64_t numbers_due_ns;        /* when to look for numbers that nobody uses */
    VEC(uint32_t) changed;                 /* slots, maybe of processes that no longer are */
    VEC(uint32_t) left_out;                /* slots, maybe of processes that no longer are */
    uint64_t retried_ns; /* when those were last tried again */
    struct layout_slots layouts;
    uint64_t left_out_ever;
    uint64_t due_ns;     /* when the first of `changed` is to be copied */
    uint32_t python_count;  /* Python processes that are sampled now */
    uint64_t python_ever;   /* Python processes that were ever sampled */
    uint64_t late_ticks;    /* ticks of Python processes that came before the process was configured */
};
void process_sampling_init(struct process_sampling *s, struct quotas *quotas);
/* Gives it the sampler that it configures, and the tables, which may be NULL. */
struct error *process_sampling_begin(struct process_sampling *s, struct sampler *sampler, struct tables *tables);
void process_sampling_deinit(struct process_sampling *s);

/*
 * Configures the sampler for a process, with what is known about it so far. Does nothing for a process that is not
 * selected. Without a sampler it only counts the process.
 */
struct error *process_sampling_configure(struct process_sampling *s, struct process *p);
/* Stops sampling a process that the filter no longer passes. */
void process_sampling_stop(struct process_sampling *s, struct process *p);
/* Stops sampling a process that is about to be dropped; another process will get its slot. */
void process_sampling_drop(struct process_sampling *s, struct process *p);
/* Whose a process is has become known, or another one: its waits count for that one from now on. */
void process_sampling_set_owner(struct process_sampling *s, const struct process *p);

/*
 * Removes the configuration that the sampler copied by itself from parent to child at a fork. Used when the child turns
 * out not to be sampled.
 */
void process_sampling_disinherit(struct process_sampling *s, uint32_t tgid);
/* Marks the mappings of a process as changed: process_sampling_publish() will update the sampler's copy. */
struct error *process_sampling_changed(struct process_sampling *s, struct process *p);
/*
 * Updates the sampler's copy of all mappings marked as changed. Call once all pending events are applied. A process with
 * many mappings that keeps changing them is copied seldom: until then its samples bring copies of their stacks where they meet an
 * address that was not mapped before, and are cut where something else was (process_trusted_frames()). Configures those
 * that the sampler had no room for, if it has now.
 */
struct error *process_sampling_publish(struct process_sampling *s, uint64_t time_ns);

#endif
