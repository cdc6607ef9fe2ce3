/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are followed without privilege, through /proc alone: those asked for
 * and their children. /proc reports nothing by itself, so it is read again and again.
 * What makes that cheap: the number that was last given to a new task (in
 * /proc/loadavg) says whether there is anything new at all, and which numbers to ask
 * after; a process's CPU clock says whether any of its threads has run.
 *
 * A child is found by its parent. One that has ended before the next round, or whose
 * parent has, is not found.
 */
#ifndef CAPTURE_PROC_FOLLOWED_H
#define CAPTURE_PROC_FOLLOWED_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "capture/host/procfs_task.h"
#include "capture/process/processes.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"

struct followed_task {
    uint32_t tid;
    uint32_t ns_tid; /* in the process's own pid namespace: as the process itself knows it */
    int fd;          /* its schedstat; -1: too many are open */
    uint64_t run_ns; /* its CPU time that samples stand for already */
    bool listed;
};

/* A thread state of the interpreter and the thread it belongs to. */
struct followed_state {
    uint32_t ns_tid;
    uint64_t address;
};

struct followed {
    uint32_t tgid;
    int dir_fd;                 /* of /proc/TGID: stays with the process when the number is given to another */
    clockid_t clock;            /* its CPU time */
    uint64_t start_boottime_ns; /* in the steps of /proc, 10 ms */
    uint64_t exec_generation;   /* counts the images that were met */
    uint64_t image;             /* tells images apart: where an exec has put code and stack */
    uint64_t clock_ns;          /* CPU time as it was last seen */
    uint64_t base_ns;           /* CPU time that is not to be sampled: before it was followed, or not spent in Python */
    uint64_t sampled_ns;        /* CPU time that samples stand for */
    uint64_t look_ns, wait_ns;  /* when to look for an interpreter again */
    uint64_t grace_ns;          /* see followed_create() */
    bool python;                /* it has an interpreter that can be walked */
    bool forbidden;             /* its memory may not be read */
    bool ended;
    VEC(struct followed_task) tasks;
    VEC(struct followed_state) states;
    uint64_t states_round;      /* when `states` was read, in rounds of the sampler */
};

struct followed_set {
    struct processes *processes;
    bool children;
    uint64_t grace_ns;
    VEC(struct followed *) list;
    uint32_t fd_limit, fd_count;
    uint32_t last_tid, earlier_tid; /* the last number given out at this look and at the one before */
    uint64_t looked_ns, swept_ns;
    uint64_t forbidden;             /* processes that may not be read */
    uint64_t unseen_ns;             /* CPU time of those that have ended that no sample stands for */
};

/* `grace_ns`: what a thread of a process that was sampled has used since its last sample, up to that, is not unseen. */
struct error *followed_create(struct processes *processes, bool children, uint64_t grace_ns, struct followed_set **out);
void followed_destroy(struct followed_set *s);
/*
 * Follows a process: selects it in the table of processes. `born`: it has just been made, and all its CPU time is to
 * be sampled. One that is gone is no error.
 */
struct error *followed_add(struct followed_set *s, uint32_t tgid, bool born, uint64_t time_ns);
/* Looks for new children and threads, and drops what has ended. Does nothing when the last look was a moment ago. */
struct error *followed_look(struct followed_set *s, uint64_t time_ns);
/* Reads the process's mappings anew: there was an exec, or an interpreter may have been loaded. */
struct error *followed_reread(struct followed_set *s, struct followed *f, uint64_t time_ns);
/* Notes that its memory may not be read: it is left alone until it executes something else. */
void followed_forbid(struct followed_set *s, struct followed *f);
/* CPU time that no sample stands for and should. */
uint64_t followed_unseen_ns(const struct followed_set *s);

/* Of a thread; false when it has ended. */
bool followed_stat(const struct followed *f, uint32_t tid, struct procfs_stat *out);

struct task_schedstat {
    uint64_t run_ns;
    uint64_t arrivals; /* how many times it was given a CPU */
};
bool followed_schedstat(const struct followed *f, const struct followed_task *t, struct task_schedstat *out);

#endif
