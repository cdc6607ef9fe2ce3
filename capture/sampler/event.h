/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be sampled: the table of event sources, and the events that a capture was
 * asked for (`-e`, `-F`, `-c`). A source is a row of event.c: names, unit, kind, how
 * the kernel calls it; sources that are no perf event will bring a function of their
 * own to open them.
 */
#ifndef CAPTURE_SAMPLER_EVENT_H
#define CAPTURE_SAMPLER_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "formats/base/err.h"

enum event_kind {
    EVENT_CLOCK,    /* counts nanoseconds; ticks come at a rate. The kernel turns the rate into a period at once */
    EVENT_HARDWARE, /* a counter of the CPU; ticks come at a rate, for which the kernel changes the period all the time */
    EVENT_COUNTED,  /* counts what happens; a tick each `period` of them */
};

struct event_source {
    const char *name, *alias; /* perf's names; alias NULL: it has one */
    const char *unit;         /* of a count: ns, cycles, faults … */
    enum event_kind kind;
    uint32_t type;            /* perf_event_attr.type and .config */
    uint64_t config;
};

/* An event as it was asked for. Of rate and period one is 0: the kernel is given the other. */
struct event {
    const struct event_source *source;
    uint64_t frequency_hz; /* ticks a second and CPU */
    uint64_t period;       /* counts a tick */
};

struct event_list {
    struct event list[WIRE_EVENT_MAX];
    uint32_t count;
};

#define EVENT_FREQUENCY_MAX 1000000
#define EVENT_PERIOD_MAX (UINT64_C(1) << 62)

/* The source of that name; NULL: there is none. */
const struct event_source *event_source(const char *name);

/*
 * Adds the events of a list like "cpu-clock,page-faults/period=1/". Those without a rate or a period of their own have
 * 0 in both until event_list_complete(). A usage error names what is wrong, and what would be right.
 */
struct error *event_list_add(struct event_list *events, const char *text);
/*
 * Gives every event its rate or its period. `frequency_hz` (-F) is for clocks and hardware counters, `period` (-c) for
 * what is counted; where nothing is counted it is for the others, as perf has it. 0: was not said. An empty list
 * becomes cpu-clock.
 */
struct error *event_list_complete(struct event_list *events, uint64_t frequency_hz, uint64_t period);

/* What the samples of an event stand for: its period, where the kernel keeps it; else 1, and each sample says it. */
uint64_t event_period(const struct event *event);
/*
 * The event at `part` of `whole` of its rate: less often, or with a larger period. Both are parts of the same thing,
 * `part` at most `whole`.
 */
struct event event_slowed(const struct event *event, uint64_t part, uint64_t whole);
/* "99 Hz", or "each 16 faults": how often it ticks. Returns `out`. */
const char *event_rate_text(const struct event *event, char out[64]);
/* The highest rate of those that have one, in Hz; 0: none has. */
uint64_t event_list_frequency(const struct event_list *events);

#endif
