/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/task/TID: the state in `stat`, the third number of `schedstat`. */
#include "capture/asyncio/loop_threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/host/procfs_task.h"

void loop_threads_clear(struct loop_threads *l)
{
    l->count = 0;
}

void loop_threads_add(struct loop_threads *l, uint32_t tid)
{
    for (uint32_t i = 0; i < l->count && i < LOOP_THREADS_MAX; i++) {
        if (l->threads[i].tid == tid)
            return;
    }
    if (l->count < LOOP_THREADS_MAX)
        l->threads[l->count] = (struct loop_thread){.tid = tid};
    if (l->count <= LOOP_THREADS_MAX)
        l->count++;
}

/* How often the thread was given a CPU; 0: cannot be told. */
static uint64_t arrivals_of(uint32_t tgid, uint32_t tid)
{
    char path[64], text[128], *rest;

    snprintf(path, sizeof path, "/proc/%u/task/%u/schedstat", tgid, tid);
    if (!procfs_read_at(AT_FDCWD, path, text, sizeof text))
        return 0;
    strtoull(text, &rest, 10);
    strtoull(rest, &rest, 10);
    return strtoull(rest, NULL, 10);
}

void loop_threads_look(struct loop_threads *l, uint32_t tgid)
{
    for (uint32_t i = 0; i < l->count && i < LOOP_THREADS_MAX; i++) {
        struct loop_thread *t = &l->threads[i];
        struct procfs_stat stat;
        /* First the count: a thread that was given a CPU between the two is seen awake, or has another count later. */
        t->arrivals = arrivals_of(tgid, t->tid);
        t->asleep = t->arrivals && procfs_stat((pid_t)tgid, (pid_t)t->tid, &stat) && stat.state != 'R';
    }
}

bool loop_threads_slept(const struct loop_threads *before, const struct loop_threads *now, uint32_t tgid)
{
    if (now->count > LOOP_THREADS_MAX || before->count > LOOP_THREADS_MAX)
        return false;
    for (uint32_t i = 0; i < now->count; i++) {
        const struct loop_thread *t = NULL;
        for (uint32_t j = 0; j < before->count; j++) {
            if (before->threads[j].tid == now->threads[i].tid)
                t = &before->threads[j];
        }
        if (!t || !t->asleep || arrivals_of(tgid, t->tid) != t->arrivals)
            return false;
    }
    return true;
}
