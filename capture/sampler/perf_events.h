/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf events of a capture in the kernel, one for each event and CPU: opens them,
 * enables and disables them, changes their periods, and counts the ticks that they should
 * have delivered.
 */
#ifndef CAPTURE_SAMPLER_PERF_EVENTS_H
#define CAPTURE_SAMPLER_PERF_EVENTS_H

#include "capture/event/event.h"

struct perf_events;
/* Opens the events that have counters, disabled, on each CPU that has them. `cpus` and the sources of `events` are borrowed. An error says what this host lacks. */
struct error *perf_events_open(const struct event_list *events, const int *cpus, uint32_t cpu_count,
                               struct perf_events **out);
/* Opens an event that has a counter on one CPU and closes it again: NULL, or why it cannot be sampled there. */
struct error *perf_events_try(const struct event *event, int cpu);
/* Accepts NULL. */
void perf_events_close(struct perf_events *e);
/* The file descriptor of event `event` on the CPU with index `i`; owned by `e`. -1: that CPU has no counter for it. */
int perf_events_fd(const struct perf_events *e, uint32_t event, uint32_t i);
/* Stores the kernel's id of the event (PERF_EVENT_IOC_ID). */
struct error *perf_events_id(const struct perf_events *e, uint32_t event, uint32_t i, uint64_t *id);
struct error *perf_events_enable(struct perf_events *e);
struct error *perf_events_disable(struct perf_events *e);
/* The events with their current rates and periods. */
const struct event_list *perf_events_list(const struct perf_events *e);
/* Changes the rate or period of event `event` from now on, on all CPUs. */
struct error *perf_events_change(struct perf_events *e, uint32_t event, const struct event *to);

struct perf_event_count {
    uint64_t count;                  /* in the event's unit */
    uint64_t enabled_ns, running_ns; /* how long it was enabled, and how long it counted */
    uint64_t due;                    /* ticks expected from count and period; 0 when the kernel chooses the period */
};
/* Reads the count of event `event` on the CPU with index `i`; all 0 for EVENT_WAIT. */
struct error *perf_events_read(struct perf_events *e, uint32_t event, uint32_t i, struct perf_event_count *out);

#endif
