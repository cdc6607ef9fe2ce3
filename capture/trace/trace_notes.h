/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the trace builder remembers of processes, their threads, and modules: the ids they
 * have in the trace, and stacks that were met before. Found by the number that process or
 * module has in its own table.
 */
#ifndef CAPTURE_TRACE_TRACE_NOTES_H
#define CAPTURE_TRACE_TRACE_NOTES_H

#include <stdint.h>

#include "capture/binary/modules.h"
#include "capture/process/process.h"
#include "capture/trace/perf_map_file.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"

/* A record of the trace that was written once for its epoch. */
struct record_id {
    uint64_t epoch; /* 0: never written */
    uint32_t id;
};

/* Stacks of a process that stand in the trace already, by what the sampler sent. */
struct known_stacks {
    uint64_t epoch; /* that the ids below belong to */
    struct intern keys;
    VEC(uint32_t) stack; /* by key's id: stack id in the trace */
};

/* Code objects of a process whose contents are known. */
struct known_codes {
    struct intern keys;  /* address and fingerprint */
    VEC(uint32_t) index; /* by key's id: index in struct codes, or CODES_NONE */
};

struct process_note {
    struct process *process; /* valid as long as the note */
    struct record_id record;
    bool sampled; /* a sample of it is in the trace */
    struct known_codes codes;
    struct known_stacks python_stacks, native_stacks;
    struct perf_map_file perf_map;
    VEC(struct record_id) threads; /* by the thread's index in its process */
};

struct module_note {
    struct record_id record;
    bool framed; /* native frames in it are in the trace */
};

/* {0} is empty. */
struct trace_notes {
    VEC(struct process_note *) processes; /* by process->slot; NULL where there is no note yet */
    VEC(struct module_note) modules;      /* by module->index */
};
void trace_notes_deinit(struct trace_notes *n);
/* The note of a process, made when it is first asked for. It stays where it is. NULL: out of memory. */
struct process_note *trace_notes_process(struct trace_notes *n, struct process *p);
/* NULL: there is none. */
struct process_note *trace_notes_find(const struct trace_notes *n, const struct process *p);
/* Before the process is dropped: its slot is given to another. */
void trace_notes_forget(struct trace_notes *n, const struct process *p);
/* Of a thread; valid until the next call. NULL: out of memory. */
struct record_id *trace_notes_thread(struct process_note *n, const struct thread *t);
/* Of a module; valid until the next call. NULL: out of memory. */
struct module_note *trace_notes_module(struct trace_notes *n, const struct module *m);

/* Bytes kept to tell code objects apart. */
uint64_t trace_notes_codes_bytes(const struct trace_notes *n);
void trace_notes_forget_codes(struct trace_notes *n);

void known_stacks_clear(struct known_stacks *s);

#endif
