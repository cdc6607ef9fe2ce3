/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each thread was doing when the recording ended: its newest stack, what it waited for, and since when; and the tasks of
 * asyncio that waited. What threads.c and waiting.c gather is made into a list by list.c; text.c and json.c write it.
 */
#ifndef FORMATS_EMIT_THREADS_THREADS_DATA_H
#define FORMATS_EMIT_THREADS_THREADS_DATA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/clock.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/names.h"
#include "formats/emit/threads/waiting.h"

/* Up to so long before the end a thread was last seen "now": two ticks of a clock at 99 Hz. */
#define THREADS_NOW_NS (20 * NS_PER_MS)
/* A thread that waits has a sample each second. Where waits are recorded, one that has had none for so long has probably ended. */
#define THREADS_GONE_NS (2 * NS_PER_S + THREADS_NOW_NS)

/* The newest sample of a thread. */
struct thread_newest {
    uint64_t time_ns;  /* CLOCK_MONOTONIC */
    uint64_t since_ns; /* of a wait: when it began */
    uint32_t stack, label_set, capture, cpu;
    enum emit_gil gil;
    bool seen;        /* else there is none, and nothing below is known */
    bool stackless;   /* there is none: what is known of the thread is its state */
    bool lasts;       /* of a wait: it went on after the sample */
    bool since_known; /* since_ns is not just when the thread was first seen */
};

/* A thread as it is shown. */
struct shown_thread {
    uint32_t thread;           /* of the model */
    const struct thread_newest *newest;
    const char *interpreter;   /* number of its subinterpreter; NULL: the main one, or unknown */
    const char *system_call;   /* NULL: unknown */
    const char *task;          /* of asyncio, that it ran; NULL: none or unknown */
    uint64_t ago_ns;           /* its newest sample, before the end */
    enum emit_wait waits;      /* for what, at that time */
    bool still;                /* it did so after that time, too; else it has run since, and its stack is older */
    const struct emit_thread_state *state; /* NULL: the recording has none */
    bool slept_since;          /* it has left its CPU after its newest sample: what it does is `state` */
    bool holds_gil;            /* the newest of its interpreter that did */
    uint32_t process, pid, tid, rank; /* the order: by these */
    uint32_t alike;            /* equal for threads of a process that are shown as one entry; these are neighbours */
};

/* A task as it is shown. */
struct shown_task {
    const struct task_newest *newest;
    const char *name, *awaiter; /* "" unknown */
    enum emit_wait waits;
    uint32_t own;               /* its stack without the mark of the wait */
    uint32_t parent;            /* in the list: of the task that awaits it; TASKS_NO_PARENT: not known */
    uint32_t process, pid, depth; /* the order: by these; depth: frames of `own` */
};
#define TASKS_NO_PARENT UINT32_MAX

struct threads_process {
    uint32_t process, pid; /* the process: of the model */
    uint32_t first, count; /* of the threads shown */
    uint32_t gone;         /* threads that were not seen for long, and of which the kernel was not asked */
    uint32_t first_task, task_count;
    uint64_t end_ns;       /* since 1970, to which its threads' times are related; 0: the capture does not know */
};

struct threads_list {
    VEC(struct shown_thread) threads; /* process by process: those that run or want to run first */
    VEC(struct shown_task) tasks;     /* process by process: a task that awaits others stands before these */
    VEC(struct threads_process) processes;
    uint32_t ended; /* processes that had samples, and are not in the list */
};

/* What was gathered, and how it is to be shown. */
struct threads {
    const struct emit_model *model;
    struct emit_options options;
    FILE *out;
    VEC(struct thread_newest) newest; /* by thread of the model */
    uint32_t *state_of;               /* at the end, by thread of the model: of its thread_states, from 1 on; 0: none */
    struct waiting_tasks tasks;
    bool has_waits, has_tasks, tells_lasting; /* samples of that kind were shown */
    /* at the end */
    struct threads_list list;
    struct names names;
    struct intern texts;
    uint32_t *ids; /* by frame: its text */
};

#endif
