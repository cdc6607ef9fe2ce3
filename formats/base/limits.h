/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file that nobody vouches for may cost its reader. A megabyte of it may unpack to gigabytes, or describe work
 * that grows with the square of its length; so what is kept of it, and what is done for it, is counted, and both have a
 * limit that grows with the file.
 *
 * Memory is counted by the containers (arena.h, intern.h, map.h) and by whoever fills an array. What exceeds a limit
 * fails as if memory had run out, and the limit remembers that it was the cause.
 */
#ifndef FORMATS_BASE_LIMITS_H
#define FORMATS_BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct limits {
    uint64_t memory_max, memory_used; /* bytes */
    uint64_t work_max, work_done;     /* steps, of a nanosecond or so */
    bool exceeded;
};

/* Takes memory; false: it would be more than the limit, and nothing was taken. `l` NULL: there is no limit, as below. */
static inline bool limits_take(struct limits *l, uint64_t len_bytes)
{
    if (!l)
        return true;
    if (len_bytes > l->memory_max - l->memory_used) {
        l->exceeded = true;
        return false;
    }
    l->memory_used += len_bytes;
    return true;
}

static inline void limits_give(struct limits *l, uint64_t len_bytes)
{
    if (l)
        l->memory_used -= len_bytes;
}

/* Counts work; false: it is more than the limit. */
static inline bool limits_work(struct limits *l, uint64_t steps)
{
    if (!l)
        return true;
    l->work_done = steps > UINT64_MAX - l->work_done ? UINT64_MAX : l->work_done + steps;
    if (l->work_done > l->work_max)
        l->exceeded = true;
    return l->work_done <= l->work_max;
}

#endif
