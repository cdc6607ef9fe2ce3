/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording session is asked for. */
#ifndef CAPTURE_SESSION_SESSION_OPTIONS_H
#define CAPTURE_SESSION_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "capture/sampler/event.h"

struct session_options {
    const char *output;      /* pattern of file names (capture/session/files.h); "-": standard output */
    uint64_t rotate_ns;      /* a new file so often; 0: not by time */
    uint64_t rotate_bytes;   /* a new file when one has become so large; 0: not by size */
    uint32_t keep;           /* of the files, the newest so many; 0: all */
    uint64_t max_bytes;      /* slower towards it, and the end at it; 0: no limit */
    uint64_t max_memory;     /* slower when pycap holds more bytes; 0: no limit */
    double max_cpu;          /* share of one CPU, for pycap and its sampler; 0: no limit */
    struct event_list events; /* what is sampled; complete */
    uint64_t frequency_hz;   /* the highest rate of those that have one, 0: none has */
    uint64_t duration_ns;    /* 0: until a signal, or the end of what is recorded */
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
    bool include_non_python;                /* processes that are not Python, too */
    uint32_t stack_bytes;    /* snapshots: of user stack a sample, at most */
    uint32_t table_bytes;    /* memory for unwind tables; 0: 32 MiB */
    bool kernel;             /* kernel frames */
    bool follow;             /* children of the processes asked for */
    uint32_t ring_bytes;     /* 0: by rate */
    char *const *command;    /* NULL-terminated, or NULL */
    const char *archive;     /* the binaries go in there at the end; NULL: no */
    bool strip_code;         /* without their code */
    const struct filter *filter; /* of the processes in question; NULL: all */
    bool cmdline;            /* command lines go into the trace */
    bool no_sandbox;         /* privileges and system calls stay as they are */
    bool has_nice;           /* `nice` was asked for */
    int nice;                /* of pycap itself, while it records */
    bool quiet;
    FILE *messages;          /* where status and summary go */
};

/* Whether stacks are copied for pysym to unwind them. */
static inline bool session_takes_snapshots(const struct session_options *o)
{
    return o->unwind == UNWIND_SNAPSHOT || o->unwind == UNWIND_BOTH;
}

#endif
