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
    uint64_t seen_ns; /* its CPU time at the last look */
    struct task_time time; /* where waits are recorded */
    bool listed;
};

/* A PyThreadState of the interpreter, and the thread it belongs to. */
struct followed_state {
    uint32_t ns_tid;
    uint64_t address, handle;
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
    uint64_t unseen_ns;         /* CPU time that no sample will stand for: see followed_unseen_ns() */
    uint32_t parent_tgid;
    char comm[17];              /* when last read; "": it was not */
    uint64_t waited_ns;         /* CPU time of children that it has waited for, with that of theirs, when last read */
    uint64_t waited_base_ns;    /* of that, what was before it was followed, or not spent in Python */
    uint64_t children_ns;       /* CPU time that children had used, with theirs, when they were last looked at, and have ended */
    uint64_t waited_unseen_ns;  /* see followed_waited_unseen_ns() */
    bool told;                  /* its parent knows what it has used */
    bool python;                /* it has an interpreter that can be walked */
    bool lacks_frames;          /* a thread of it ran, and had no Python frames: it may have loaded another interpreter */
    bool forbidden;             /* its memory may not be read */
    bool ended;
    VEC(struct followed_task) tasks;
    VEC(struct followed_state) states;
    uint64_t states_round;      /* the sampler's round in which `states` was read */
    uint64_t newest_interpreter; /* its address, as `states` was read */
    bool several_interpreters;  /* there were others than the main one then */
    bool subinterpreters;       /* they are of several interpreters, and a state may run in another thread than it names */
};

struct followed_set {
    struct processes *processes;
    bool children;
    /* Called for a thread that is there no more, before its process is forgotten; NULL: nobody wants to know. */
    struct error *(*gone)(void *ctx, const struct followed *f, struct followed_task *t);
    void *gone_ctx;
    VEC(struct followed *) list;
    uint32_t fd_limit, fd_count;
    uint32_t last_tid, earlier_tid; /* the last pid given out, at the last poll and at the one before */
    uint64_t looked_ns, swept_ns;   /* when last polled, and when all of /proc was last read */
    uint64_t forbidden;             /* processes that may not be read */
    uint64_t waited_ns;             /* when processes were last asked for their waited_ns */
    uint64_t unseen_ns, waited_unseen_ns; /* those of processes that have ended */
};

/* `processes` is borrowed. */
struct error *followed_create(struct processes *processes, bool children, struct followed_set **out);
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
/*
 * Returns the CPU time that samples should stand for, and never will: by the clocks of the processes, which have the time of
 * threads that have ended. What threads that are there have used since their last samples is none of it.
 */
uint64_t followed_unseen_ns(const struct followed_set *s);
/*
 * Returns the CPU time of children, of Python programs, that came when nobody looked: after the last look at them, or all of it. The
 * children were waited for; what they ran is not known.
 */
uint64_t followed_waited_unseen_ns(const struct followed_set *s);
/* The next look leaves nothing out, however short the time since the last one. */
void followed_hurry(struct followed_set *s);
/* No sample comes any more: what threads have used since their last ones is unseen, too. */
void followed_finish(struct followed_set *s);

/* Reads the process's CPU clock into clock_ns; false when it has ended and was reaped. To be followed by a look at its threads. */
bool followed_read_clock(struct followed *f);
/* Samples need not stand for the CPU time that its threads have used since their last ones. */
void followed_write_off(struct followed *f);

/* Reads the stat file of a thread; false when it has ended. */
bool followed_stat(const struct followed *f, uint32_t tid, struct procfs_stat *out);

/* Reads what its syscall file says; false when it has ended, or the file may not be read. */
bool followed_system_call(const struct followed *f, uint32_t tid, char *text, size_t cap);
/* Reads the schedstat file of a thread; false when it has ended. */
bool followed_schedstat(const struct followed *f, const struct followed_task *t, struct task_schedstat *out);

#endif
