/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether threads of event loops ran while their tasks were read: the kernel counts how often each was given a CPU. A
 * thread that slept and was given none since then did not run, and without it none of its tasks goes on.
 */
#ifndef CAPTURE_ASYNCIO_LOOP_THREADS_H
#define CAPTURE_ASYNCIO_LOOP_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#define LOOP_THREADS_MAX 8 /* of a process; those of one with more are taken to have run */

struct loop_thread {
    uint32_t tid;
    uint64_t arrivals; /* how often it was given a CPU */
    bool asleep;       /* it was, when it was looked at; false also where that cannot be told */
};
struct loop_threads {
    struct loop_thread threads[LOOP_THREADS_MAX];
    uint32_t count; /* may be LOOP_THREADS_MAX + 1: there are more */
};

/* Forgets all. */
void loop_threads_clear(struct loop_threads *l);
/* Adds a thread, once. */
void loop_threads_add(struct loop_threads *l, uint32_t tid);
/* Looks at the threads, which belong to process `tgid`. */
void loop_threads_look(struct loop_threads *l, uint32_t tgid);
/* Whether all threads of `now` were asleep when `before` was looked at, and have not run since. */
bool loop_threads_slept(const struct loop_threads *before, const struct loop_threads *now, uint32_t tgid);

#endif
