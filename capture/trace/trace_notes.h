/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the trace builder remembers about processes, their threads, and modules: their ids
 * in the trace, and the stacks seen before. Lookup is by the index that a process (its
 * slot) or a module has in its own table.
 */
#ifndef CAPTURE_TRACE_TRACE_NOTES_H
#define CAPTURE_TRACE_TRACE_NOTES_H

#include <stdint.h>

#include "capture/binary/modules.h"
#include "capture/process/process.h"
#include "capture/trace/perf_map_file.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"

/* The id of a record, and the epoch in which it is valid. */
struct record_id {
    uint64_t epoch; /* 0: never written */
    uint32_t id;
};

/* The stacks of a process that are in the trace already. The key is the stack as the sampler sent it. */
struct known_stacks {
    uint64_t epoch; /* in which the ids below are valid */
    struct intern keys;
    VEC(uint32_t) stack; /* by key's id: stack id in the trace */
};

/* Code objects of a process whose contents are known. */
struct known_codes {
    struct intern keys;  /* address and fingerprint */
    VEC(uint32_t) index; /* by key's id: index in struct codes, or CODES_NONE */
};

/* Code objects that were met in stacks of a process. */
struct met_codes {
    uint64_t epoch;     /* in which the ids below are valid */
    VEC(uint64_t) bits; /* one for each id of a CODE record */
};

struct process_note {
    struct process *process; /* valid as long as the note */
    struct record_id record;
    uint64_t start_boottime_ns, exec_generation; /* as its records have them, all alike: of one without a sample they are estimates */
    bool identified;       /* these are set */
    char *cmdline;         /* as last written, where command lines were asked for; NULL: unknown */
    uint64_t title_read_ns; /* when that was last read because of a new title; 0: never */
    bool title_stale;      /* there was another one since */
    uint64_t mapped_epoch; /* the epoch that its mappings were last written to */
    bool sampled; /* the trace holds a sample of it */
    struct known_codes codes;
    struct met_codes met;
    struct known_stacks python_stacks, native_stacks;
    bool stacks_over;   /* its new stacks took more than its quota when last counted */
    bool mappings_over; /* the same for its mappings */
    struct perf_map_file perf_map;
    VEC(struct record_id) threads; /* by the thread's index in its process */
};

struct module_note {
    struct record_id record;
    bool is_inspected; /* otherwise the record was written before the module could be, which may come later */
    bool framed; /* the trace holds a native frame in it */
};

/* {0} is empty. */
struct trace_notes {
    VEC(struct process_note *) processes; /* by process->slot; NULL where there is no note yet */
    VEC(struct module_note) modules;      /* by module->index */
};
void trace_notes_deinit(struct trace_notes *n);
/*
 * Returns the note of a process; creates it on the first call. The pointer is valid until trace_notes_forget(). NULL:
 * out of memory.
 */
struct process_note *trace_notes_process(struct trace_notes *n, struct process *p);
/* Returns the note of a process, or NULL when it has none yet. */
struct process_note *trace_notes_find(const struct trace_notes *n, const struct process *p);
/* Frees the note. Call before the process is dropped, since another process will get its slot. */
void trace_notes_forget(struct trace_notes *n, const struct process *p);
/* Returns the note of a thread; creates it on the first call. Valid until the next call. NULL: out of memory. */
struct record_id *trace_notes_thread(struct process_note *n, const struct thread *t);
/* Returns the note of a module; creates it on the first call. Valid until the next call. NULL: out of memory. */
struct module_note *trace_notes_module(struct trace_notes *n, const struct module *m);

/* Returns the bytes of memory that a process's table of known code objects takes; the second function empties it. */
uint64_t trace_note_codes_bytes(const struct process_note *n);
void trace_note_forget_codes(struct process_note *n);
/* The same for all processes. */
uint64_t trace_notes_codes_bytes(const struct trace_notes *n);
void trace_notes_forget_codes(struct trace_notes *n);

void known_stacks_clear(struct known_stacks *s);
/* Returns the bytes of memory that the table takes. */
uint64_t known_stacks_bytes(const struct known_stacks *s);

#endif
