/* SPDX-License-Identifier: Apache-2.0 */
/* What a sample's value is an amount of. One of these is what all views ask of an event; its name and unit are for readers alone. */
#ifndef FORMATS_BASE_EVENT_VALUE_H
#define FORMATS_BASE_EVENT_VALUE_H

#include <stdbool.h>

enum event_value {
    EVENT_AMOUNT, /* in a unit of its own, sampled each so many, as cycles */
    /* In nanoseconds: */
    EVENT_CPU_TIME,     /* that threads ran */
    EVENT_WALL_TIME,    /* that threads existed: on the CPU, and off it */
    EVENT_COUNTED_TIME, /* that something which happened says of itself, as the kernel's tracepoints do */
    EVENT_OFF_CPU,      /* that threads were off the CPU, their own */
    EVENT_BLAME,        /* that other threads waited for what the sample's thread held. Its own time it is not */
    EVENT_TASK_WAIT,    /* that asyncio tasks of the thread waited. Many do at once: the thread's own time it is not */
    /* In other units: */
    EVENT_COUNT,  /* of what happens: what is shown are the counts, however many samples stand for them */
    EVENT_BYTES,  /* the same, in bytes */
    EVENT_MEMORY, /* bytes that processes take from the kernel, by page faults or mappings */
};

static inline bool event_is_time(enum event_value kind)
{
    return kind >= EVENT_CPU_TIME && kind <= EVENT_TASK_WAIT;
}

/* Is it time that threads ran, also where time that they waited is with it? */
static inline bool event_is_running(enum event_value kind)
{
    return kind == EVENT_CPU_TIME || kind == EVENT_WALL_TIME;
}

static inline bool event_is_waiting(enum event_value kind)
{
    return kind == EVENT_OFF_CPU || kind == EVENT_BLAME || kind == EVENT_TASK_WAIT;
}

static inline bool event_is_bytes(enum event_value kind)
{
    return kind == EVENT_BYTES || kind == EVENT_MEMORY;
}

static inline bool event_is_counted(enum event_value kind)
{
    return kind == EVENT_COUNTED_TIME || kind == EVENT_COUNT || event_is_bytes(kind);
}

/* Is a sample's value the time that its thread has spent, up to the sample, on what the stack shows? */
static inline bool event_has_spans(enum event_value kind)
{
    return kind == EVENT_CPU_TIME || kind == EVENT_OFF_CPU || kind == EVENT_WALL_TIME;
}

#endif
