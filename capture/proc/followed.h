/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows processes without privilege, by polling /proc: the processes the user asked for,
 * and their children. Polling is cheap because little has to be read: the pid that was
 * last given to a new task (in /proc/loadavg) tells whether there are new tasks and which
 * pids to look at, and a process's CPU clock tells whether any of its threads has run.
 *
 * A child is found by its parent's pid. A child that ends before the next round, or whose
 * parent does, is missed.
 */
#ifndef CAPTURE_PROC_FOLLOWED_H
#define CAPTURE_PROC_FOLLOWED_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "capture/host/procfs_task.h"
#include "capture/proc/task_time.h"
#include "capture/process/processes.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"

struct followed_task {
    uint32_t tid;
    uint32_t ns_tid; /* its tid in the process's own pid namespace */
    int fd;          /* its schedstat file; -1: not open, since too many files are */
    uint64_t run_ns; /* its CPU time up to its last sample */
    struct task_time time; /* where waits are recorded */
    bool listed;
};

/* A PyThreadState of the interpreter, and the thread it belongs to. */
struct followed_state {
    uint32_t ns_tid;
    uint64_t address;
};

struct followed {
    uint32_t tgid;
    int dir_fd;                 /* of /proc/TGID: refers to this process even when its pid is reused */
    clockid_t clock;            /* its CPU clock */
    uint64_t start_boottime_ns; /* with the resolution of /proc, 10 ms */
    uint64_t exec_generation;   /* counts the program images seen */
    uint64_t image;             /* differs between images: made of the addresses at which exec put code and stack */
    uint64_t clock_ns;          /* CPU time when last read */
    uint64_t base_ns;           /* CPU time that needs no samples: before it was followed, or not spent in Python */
    uint64_t sampled_ns;        /* CPU time that samples stand for */
    uint64_t look_ns, wait_ns;  /* when to look for an interpreter again */
    uint64_t grace_ns;          /* see followed_create() */
    bool python;                /* it has an interpreter that can be walked */
    bool forbidden;             /* its memory may not be read */
    bool ended;
    VEC(struct followed_task) tasks;
    VEC(struct followed_state) states;
    uint64_t states_round;      /* the sampler's round in which `states` was read */
};

struct followed_set {
    struct processes *processes;
    bool children;
    /* Called for a thread that is there no more, before its process is forgotten; NULL: nobody wants to know. */
    struct error *(*gone)(void *ctx, const struct followed *f, struct followed_task *t);
    void *gone_ctx;
    uint64_t grace_ns;
    VEC(struct followed *) list;
    uint32_t fd_limit, fd_count;
    uint32_t last_tid, earlier_tid; /* the last pid given out, at the last poll and at the one before */
    uint64_t looked_ns, swept_ns;   /* when last polled, and when all of /proc was last read */
    uint64_t forbidden;             /* processes that may not be read */
    uint64_t unseen_ns;             /* CPU time of programs that have ended that no sample stands for */
};

/*
 * `grace_ns`: CPU time that a sampled process has used since its last sample does not count as unseen up to this much.
 * `processes` is borrowed.
 */
struct error *followed_create(struct processes *processes, bool children, uint64_t grace_ns, struct followed_set **out);
void followed_destroy(struct followed_set *s);
/*
 * Follows a process, and selects it in the table of processes. `born`: it has just been forked, so samples stand for
 * all of its CPU time. A process that has ended is no error.
 */
struct error *followed_add(struct followed_set *s, uint32_t tgid, bool born, uint64_t time_ns);
/* Polls for new children and threads, and drops processes that have ended. Paces itself: call at every round. */
struct error *followed_look(struct followed_set *s, uint64_t time_ns);
/* Reads the process's mappings again, after an exec, or when an interpreter may have been loaded. */
struct error *followed_reread(struct followed_set *s, struct followed *f, uint64_t time_ns);
/* Marks a process as unreadable: it is not tried again until it calls exec. */
void followed_forbid(struct followed_set *s, struct followed *f);
/* Returns the CPU time that samples should stand for, and do not. */
uint64_t followed_unseen_ns(const struct followed_set *s);

/* Reads the stat file of a thread; false when it has ended. */
bool followed_stat(const struct followed *f, uint32_t tid, struct procfs_stat *out);

/* Reads what its syscall file says; false when it has ended, or the file may not be read. */
bool followed_system_call(const struct followed *f, uint32_t tid, char *text, size_t cap);
/* Reads the schedstat file of a thread; false when it has ended. */
bool followed_schedstat(const struct followed *f, const struct followed_task *t, struct task_schedstat *out);

#endif
