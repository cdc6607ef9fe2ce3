/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks in nanoseconds, and the units that times are counted in. */
#ifndef FORMATS_BASE_CLOCK_H
#define FORMATS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)

static inline uint64_t timespec_ns(struct timespec t)
{
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* The inverse, for system calls that wait. */
static inline struct timespec timespec_of_ns(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

/* Any clock of clock_gettime(2); the caller knows that it exists. */
static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return timespec_ns(t);
}

/* CLOCK_MONOTONIC, the clock of samples and of the side-band. */
static inline uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

#endif
