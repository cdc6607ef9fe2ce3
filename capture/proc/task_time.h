/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the time of a thread went, without privilege: the kernel counts its time on a CPU and its time in run queues
 * (/proc/PID/task/TID/schedstat); what is left of the time that passed it was asleep. These sums are exact, and say nothing of
 * what it slept for: that is seen at each look, and a sample stands for the sleep since the one before.
 */
#ifndef CAPTURE_PROC_TASK_TIME_H
#define CAPTURE_PROC_TASK_TIME_H

#include <stdbool.h>
#include <stdint.h>

/* A schedstat file. */
struct task_schedstat {
    uint64_t run_ns;
    uint64_t queued_ns; /* in run queues */
    uint64_t arrivals;  /* how many times it was given a CPU */
};

/* All zero: the thread was not looked at yet. Times are CLOCK_MONOTONIC. */
struct task_time {
    uint64_t since_ns, until_ns;             /* what it is accounted for; since_ns 0: nothing */
    struct task_schedstat last;              /* at until_ns */
    uint64_t run_ns, queued_ns, asleep_ns;   /* since since_ns; they add up to until_ns - since_ns */
    uint64_t arrivals;
    uint64_t asleep_owed_ns, queue_owed_ns;  /* of these, what no sample stands for yet */
    uint64_t wait_ns;                        /* when the wait began that it was seen in last, as its sample says; 0: in none */
};

/* Accounts for the time up to `time_ns`, at which the kernel's counts were `now`. */
void task_time_look(struct task_time *t, const struct task_schedstat *now, uint64_t time_ns);
/* The same where the thread is known not to have run since the last look: it slept on. */
void task_time_sleeps(struct task_time *t, uint64_t time_ns);
/* Whether the thread has run since it was seen asleep. */
bool task_time_ran(const struct task_time *t, const struct task_schedstat *now);

#endif
