/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a recording session, checked and complete. All pointers are borrowed. */
#ifndef CAPTURE_SESSION_SESSION_OPTIONS_H
#define CAPTURE_SESSION_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/event/event.h"
#include "capture/when/condition.h"
#include "formats/base/clock.h"

/* What a recording that has not begun is at, in memory that another process may read. */
enum session_step { STEP_BEGINS, STEP_SOURCES, STEP_BINARIES, STEP_SAMPLES };
struct session_progress {
    _Atomic enum session_step step;
    _Atomic uint32_t processes; /* that were found */
};

struct session_options {
    const char *output;      /* pattern of file names (capture/output/files.h); "-": standard output */
    uint64_t rotate_ns;      /* begin a new file this often; 0: not by time */
    uint64_t rotate_bytes;   /* begin a new file when one has this size; 0: not by size */
    bool on_demand;          /* record into memory, and write a file for each event */
    uint64_t before_ns, after_ns; /* of an event's file: the time before and after it */
    uint32_t keep;           /* how many finished files to keep, the newest; 0: all */
    uint64_t max_bytes;      /* of the file: lower the rate towards it, and end at it; 0: no limit */
    uint64_t max_memory;     /* lower the rate when pycap holds more bytes; 0: no limit */
    double max_cpu;          /* share of one CPU, for pycap and its sampler; 0: no limit */
    struct event_list events; /* what to sample; event_list_complete() was called */
    uint64_t frequency_hz;   /* the highest rate of the events that have one; 0: none has */
    uint64_t duration_ns;    /* 0: until a signal, or the end of what is recorded */
    bool at_once;            /* end as soon as each thread has a stack, which is taken at once; waits are recorded */
    const uint32_t *pids;    /* NULL with pid_count 0: every Python process, or the command */
    uint32_t pid_count;
    const int *cpus;         /* NULL: all that are online */
    uint32_t cpu_count;
    enum unwind_mode {
        UNWIND_TABLES,         /* in the kernel, by unwind tables */
        UNWIND_SNAPSHOT,       /* later, by pysym, from a copy of the stack */
        UNWIND_BOTH,           /* both, to compare them */
        UNWIND_FRAME_POINTERS, /* in the kernel, by frame pointers */
        UNWIND_NO,
    } unwind;                /* how native frames are found */
    enum backend {
        BACKEND_AUTO, /* BPF; where that is refused and a command or processes are named, BACKEND_PROC */
        BACKEND_BPF,
        BACKEND_PROC, /* by reading the processes' memory: Python frames only, no privilege */
    } backend;
    bool include_non_python; /* record processes that are not Python, too */
    uint32_t stack_bytes;    /* how much user stack a sample may copy, in bytes */
    uint32_t table_bytes;    /* memory for unwind tables, at most; 0: chosen by the host */
    bool kernel;             /* record kernel frames */
    bool wakers;             /* record who ends waits; an event is of kind EVENT_WAIT */
    bool follow;             /* record the children of the requested processes, too */
    uint32_t ring_bytes;     /* size of the BPF ring; 0: chosen by rate and CPUs */
    char *const *command;    /* NULL-terminated, or NULL */
    int command_error_fd;    /* its standard error; 0: pycap's own */
    const char *archive;     /* pack the binaries into this file at the end; NULL: do not */
    const char *group;       /* name or number of a group that may read what is written; NULL: none */
    const char *status;      /* file of figures about the recording, for Prometheus; NULL: none */
    bool strip_code;         /* leave their code and data out */
    const struct filter *filter; /* only processes that pass it; NULL: all */
    bool cmdline;            /* record command lines */
    bool check_unwind;       /* unwind natively with and without cached rows, and say whether both are the same */
    bool no_sandbox;         /* keep all privileges and system calls */
    bool has_nice;           /* --nice was given */
    int nice;                /* of pycap itself, while it records */
    uint32_t realtime;       /* the same: its priority by SCHED_FIFO; 0: it is an ordinary program */
    const struct when_list *when; /* with on_demand: conditions on which a file is written; NULL: there are none */
    bool quiet;              /* no status line and no summary */
    bool verbose;            /* the summary tells of ticks, losses and cost */
    FILE *messages;          /* status line and summary are written here */
    struct session_progress *progress; /* NULL: nobody looks */
};

/*
 * How often the backend without BPF looks at all threads: at the clock's rate, or else once in the period of waits, or in
 * that of task-wait. 0: none of these is asked for.
 */
static inline uint64_t session_looks_hz(const struct session_options *o)
{
    uint32_t wait = event_list_wait(&o->events);

    if (wait == EVENT_NONE)
        wait = event_list_first(&o->events, EVENT_TASK);
    if (o->frequency_hz || wait == EVENT_NONE)
        return o->frequency_hz;
    return o->events.list[wait].period < NS_PER_S ? NS_PER_S / o->events.list[wait].period : 1;
}

/* Whether the trace gets copies of stacks, which pysym unwinds. */
static inline bool session_takes_snapshots(const struct session_options *o)
{
    return o->unwind == UNWIND_SNAPSHOT || o->unwind == UNWIND_BOTH;
}

#endif
