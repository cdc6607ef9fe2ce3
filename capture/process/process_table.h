/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of processes, by pid, with the code that each has mapped. processes.c keeps it
 * up to date from events; processes_proc.c fills it from /proc. Whatever changes here is
 * passed on to the sampler (process_sampling.h).
 */
#ifndef CAPTURE_PROCESS_PROCESS_TABLE_H
#define CAPTURE_PROCESS_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/binary/modules.h"
#include "capture/host/quotas.h"
#include "capture/process/filter.h"
#include "capture/process/process.h"
#include "capture/process/process_sampling.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"

struct processes_options {
    bool whole_host;         /* select every Python process; else only those asked for */
    bool follow;             /* select the children of selected processes, too */
    bool include_non_python; /* select processes without an interpreter that can be walked, too */
    bool recorded;           /* a scan is no longer than a recording can wait: what it leaves out is read later */
    const struct filter *filter; /* NULL: every process passes */
};

/*
 * Callbacks for those who keep data about processes by slot. `ended` is called before a process is dropped (it exited
 * or called exec) and its slot is reused; `threads_forgotten` before its threads are numbered anew. Each may be NULL.
 */
struct processes_events {
    void (*remapped)(void *ctx, struct process *p); /* some of its addresses may mean something else now */
    void (*mapped)(void *ctx, struct process *p, struct code_mapping *m);
    void (*ended)(void *ctx, struct process *p, uint64_t time_ns);
    void (*renamed)(void *ctx, struct process *p, struct thread *t, uint64_t time_ns);
    void (*threads_forgotten)(void *ctx, struct process *p);
    void *ctx;
};

struct processes_counts {
    uint32_t python;      /* configured now */
    uint64_t seen_python; /* ever */
    uint64_t learned;     /* times that an interpreter, or asyncio, was found in the files of a process */
    uint64_t refused;     /* interpreters of a version or build that cannot be walked */
    uint64_t gone;        /* processes that ended while they were being read */
    uint64_t forbidden;   /* selected processes whose mappings may not be read */
    uint64_t left_out;    /* processes that the sampler had no room for, for a while at least */
    uint64_t lost;        /* side-band events the kernel dropped */
    uint64_t late_ticks;  /* ticks of Python processes that came before the process was configured */
    uint64_t loaded_ns;   /* when a process that is sampled, or was asked for, last mapped code or called exec */
};

/* A pass over /proc after events were lost (processes_rescan.c). */
struct rescan {
    pid_t *pids; /* owned */
    size_t count, next;
    bool running;
    uint32_t pass;   /* number of this pass, or of the next one */
    uint64_t due_ns; /* of the next slice, or pass */
};

/* A process with a mapping whose module is pending. It may have ended. */
struct waiting_process {
    uint32_t tgid, module;
};

struct processes {
    struct processes_options options;
    struct processes_events events;
    struct modules *modules;
    VEC(struct waiting_process) waiting;
    struct map is_waiting; /* the same, as a set */
    struct process_sampling sampling;
    struct code_pool code_pool; /* of the mappings of all processes */
    struct quotas *quotas; /* by process->slot */
    struct owner_host host;
    struct map by_tgid; /* -> index of live */
    VEC(struct process *) live;
    uint32_t held_tgid;        /* the command that pycap starts, until it executes its program; 0: none, or it has */
    uint64_t lives;            /* processes that there have been */
    uint32_t slot_count;       /* slots in use or in free_slots */
    VEC(uint32_t) free_slots;
    struct processes_counts counts; /* without those that `sampling` keeps */
    uint64_t filtered_ns; /* when the filter was last applied to all processes */
    bool missed;          /* events were lost since the last pass over /proc began */
    uint64_t lost_ns;     /* when the last loss of events was reported; 0: none was */
    struct rescan rescan;
};
struct error *processes_create(const struct processes_options *options, struct modules *modules, struct processes **out);
void processes_destroy(struct processes *p);
/*
 * Has the sampler configured from now on, also for those processes that are in the table; before, and without this, the table
 * is only kept. Both are borrowed; `tables` is NULL where the sampler does not unwind with tables.
 */
struct error *processes_begin_sampling(struct processes *p, struct sampler *sampler, struct tables *tables);
void processes_set_events(struct processes *p, const struct processes_events *events);
struct processes_counts processes_counts(const struct processes *p);

/* Returns the process with this pid, or NULL when the table has none. */
struct process *processes_find(struct processes *p, uint32_t tgid);
/*
 * Iterates over all processes, those that ended a moment ago included. Start with *cursor 0; returns NULL at the end.
 */
struct process *processes_next(struct processes *p, uint32_t *cursor);
/*
 * Adds a process under this pid, and drops the one that had the pid before. Only pid and time are known of the new one.
 * The table owns `*out`.
 */
struct error *processes_begin(struct processes *p, uint32_t tgid, uint64_t time_ns, struct process **out);
/*
 * Where two interpreters are mapped: reads which one runs, or whether both do, unless that is known. True: it is another one than
 * up to now, or the rival runs, too, which processes_configure() has to tell the sampler.
 */
bool processes_choose_python(struct processes *p, struct process *process);
/* Sets whose quotas the process's are part of. Call after process_select(), by which quotas differ, too. */
void processes_set_owner(struct processes *p, struct process *process, const struct owner_facts *facts);
/* Takes a process out of the table, and frees it. */
void processes_drop(struct processes *p, struct process *process, uint64_t time_ns);
/*
 * Adds a copy of a mapping, unless it is beyond a limit, which is counted for the process, or the process has it already (both /proc and the side-band report it). Inspects the
 * mapped file, and configures the sampler when the file turns out to be an interpreter.
 */
struct error *processes_map(struct processes *p, struct process *process, const struct code_mapping *mapping);
/* The mapping is left out because of a limit, which has been counted: what was there before is not any more. */
struct error *processes_refuse_mapping(struct processes *p, struct process *process, const struct code_mapping *mapping);
/* Whether the process has exactly this mapping already. */
bool processes_has_mapping(const struct process *process, const struct code_mapping *mapping);
/* Makes use of modules that are not pending any more. Call when modules_fd() is readable. */
struct error *processes_take_modules(struct processes *p);
/* Tries again, after a while, to open files that a process maps and that could not be opened. Call when one of them matters. */
struct error *processes_open_again(struct processes *p, struct process *process, uint64_t time_ns);
/* Looks again at what a process has mapped: modules that it waited for may be known now. */
struct error *processes_look(struct processes *p, struct process *process);
/* Whether samples of the process are recorded: it is selected, and it is Python or include_non_python is set. */
bool processes_wants(const struct processes *p, const struct process *process);
/* See process_sampling_configure(). Call when a sample arrives of a process that is not `configured`. */
struct error *processes_configure(struct processes *p, struct process *process);

#endif
