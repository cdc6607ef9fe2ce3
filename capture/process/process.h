/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process: an address space, from its fork or exec to its end. Here is what it is: identity,
 * names, mappings, interpreter. What others remember of a process they keep in tables of their
 * own, by its slot.
 */
#ifndef CAPTURE_PROCESS_PROCESS_H
#define CAPTURE_PROCESS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "capture/binary/code_mappings.h"
#include "capture/binary/modules.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/cpython/thread_name.h"

struct thread {
    uint32_t tid;
    uint32_t index; /* among its process's threads, until they are forgotten */
    char name[17];
    uint64_t handle;   /* its pthread handle; 0: Python does not know it */
    char *python_name; /* NULL: unknown */
    uint64_t name_due_ns; /* when to look for it again */
    uint32_t name_wait_ms;
};

struct process {
    uint32_t slot; /* its number in owners' tables, from 0; another process gets it when this one is dropped */
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
};

/* Made and dropped by the table of processes. */
void process_destroy(struct process *p);
void process_select(struct process *p, bool in_scope, bool passes);
/* The thread; made on first sight. Valid until the next one is made. NULL: out of memory. */
struct thread *process_thread(struct process *p, uint32_t tid);
/* NULL: not met yet. */
struct thread *process_find_thread(struct process *p, uint32_t tid);
void process_forget_threads(struct process *p);
/* Whether the process has an interpreter whose frames can be walked. */
bool process_has_python(const struct process *p);
/*
 * Where the process's interpreter has what the frame walk begins with, written over those members of `out`; false when it
 * has no interpreter that can be walked.
 */
bool process_python(const struct process *p, struct wire_process *out);
/*
 * The path of an executable mapping whose file could not be opened, so that nobody knows what it is; NULL where there is
 * no such mapping. Only where they were looked at: in processes that are selected.
 */
const char *process_unopened(const struct process *p);

#endif
