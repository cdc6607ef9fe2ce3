/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf events of a capture as the kernel has them: one for each event and CPU. Opens
 * them, turns them on and off, changes their periods, and keeps the account of the ticks
 * that they should have given.
 */
#ifndef CAPTURE_SAMPLER_PERF_EVENTS_H
#define CAPTURE_SAMPLER_PERF_EVENTS_H

#include "capture/sampler/event.h"

struct perf_events;
/* Opens all of them, disabled. `cpus` and the sources of `events` are borrowed. An error says what this host lacks. */
struct error *perf_events_open(const struct event_list *events, const int *cpus, uint32_t cpu_count,
                               struct perf_events **out);
/* Accepts NULL. */
void perf_events_close(struct perf_events *e);
/* Of event `event` on the CPU with index `i`. */
int perf_events_fd(const struct perf_events *e, uint32_t event, uint32_t i);
/* Somebody else closes that file descriptor, and not before perf_events_close(). */
void perf_events_disown(struct perf_events *e, uint32_t event, uint32_t i);
/* The number by which the kernel knows it, in `*id`. */
struct error *perf_events_id(const struct perf_events *e, uint32_t event, uint32_t i, uint64_t *id);
struct error *perf_events_enable(struct perf_events *e);
struct error *perf_events_disable(struct perf_events *e);
/* The events as they are now. */
const struct event_list *perf_events_list(const struct perf_events *e);
/* Event `event` has that rate or period from now on. */
struct error *perf_events_change(struct perf_events *e, uint32_t event, const struct event *to);

struct perf_event_count {
    uint64_t count;                  /* in the event's unit */
    uint64_t enabled_ns, running_ns; /* when it was on, and when it did count */
    uint64_t due;                    /* ticks that the count makes, period by period; 0 where the kernel changes the period */
};
struct error *perf_events_read(struct perf_events *e, uint32_t event, uint32_t i, struct perf_event_count *out);

#endif
