/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread for work on files of others, which may take long or never end: a file system in user space need not answer.
 * Jobs are taken in turns, one of each owner (owner.h), and of his one of each process, so that nobody's many jobs or
 * processes delay another's first. A thread that has been at a job for too long is abandoned and replaced. While it hangs, and
 * for WORKER_BAN_NS at least, its process's other jobs are returned undone; and those of its owner, once
 * WORKER_HANGS_OF_OWNER of his jobs were abandoned.
 */
#ifndef CAPTURE_BINARY_WORKER_H
#define CAPTURE_BINARY_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

/* The first member of what a job needs, which is allocated together with it. */
struct worker_job {
    struct worker_job *next; /* of the worker */
    uint64_t process; /* that it is done for: a number that is never reused */
    uint64_t owner;   /* whose process that is */
    uint32_t number; /* by which worker_give_up() reports it */
    bool undone;     /* of the worker: it was returned without being run */
    /* In the worker's thread. Ends early, in whatever state, once *stop is set. */
    void (*run)(struct worker_job *job, const atomic_bool *stop);
    /* In any thread. */
    void (*destroy)(struct worker_job *job);
};

/* Jobs that wait: beyond these a job is refused. */
#define WORKER_JOBS_MAX 16384
#define WORKER_JOBS_OF_OWNER 4096

/* A thread that is at one job for so long is abandoned: when it only waits, and when it computes. */
#define WORKER_STUCK_NS (UINT64_C(3) * 1000000000)
#define WORKER_LONG_NS (UINT64_C(20) * 1000000000)

#define WORKER_BAN_NS (UINT64_C(60) * 1000000000)
#define WORKER_HANGS_OF_OWNER 2

struct worker;
/* `begin` runs first in each thread, to give up privileges. */
struct error *worker_create(void (*begin)(void), struct worker **out);
/* Waits for the job at hand a moment, then abandons it: what its thread may use is freed when that ends, if ever. */
void worker_destroy(struct worker *w);

/*
 * Takes a job over and returns true; or destroys it and returns false: too many wait, its process or its owner had threads
 * abandoned, or memory ran out.
 */
bool worker_add(struct worker *w, struct worker_job *job);
/* Returns a job that is done, or will not be run, which the caller destroys; NULL: there is none. */
struct worker_job *worker_take(struct worker *w);
/* Waits until worker_take() has something to return, or until the time (CLOCK_MONOTONIC). False: the time is over. */
bool worker_wait(struct worker *w, uint64_t until_ns);
/* Whether a job waits or is being done. */
bool worker_is_busy(struct worker *w);
/* A file descriptor that becomes readable when a job is done; worker_take() until NULL makes it unreadable again. */
int worker_fd(const struct worker *w);
/* Abandons a job that takes too long: stores its number and returns true. Call about once a second. */
bool worker_give_up(struct worker *w, uint64_t time_ns, uint32_t *number);

#endif
