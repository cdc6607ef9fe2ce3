/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can be sampled: the table of event sources, and the events that the user requested
 * (`-e`, `-F`, `-c`). A source has names, a unit, a kind, and type and config for
 * perf_event_open(2). It is a row in event_table.c, or is made of what the user wrote (event_parse.c).
 */
#ifndef CAPTURE_EVENT_EVENT_H
#define CAPTURE_EVENT_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bpf/wire.h"
#include "capture/event/tracepoint.h"
#include "formats/base/err.h"

enum event_kind {
    EVENT_CLOCK,    /* counts nanoseconds; ticks at a rate, which the kernel converts to a fixed period */
    EVENT_HARDWARE, /* a counter of the CPU; ticks at a rate, for which the kernel keeps adjusting the period */
    EVENT_COUNTED,  /* counts occurrences; ticks once per `period` occurrences */
    EVENT_WAIT,     /* no perf event: time off the CPU, from the kernel's switches; a stack per `period` ns at a call site */
    EVENT_TRACEPOINT, /* a program of ours runs at each hit, and counts by itself; a sample per `period` */
    EVENT_GROWTH,   /* no perf event: memory that system calls gave the process; a sample per `period` bytes */
    EVENT_TASK,     /* no perf event: time in which asyncio tasks wait, by looking at them every `period` ns */
};

struct event_source {
    const char *name, *alias; /* perf's names; alias is NULL when there is only one */
    const char *unit;         /* unit of the count: ns, cycles, faults … */
    enum event_kind kind;
    uint32_t type;            /* perf_event_attr.type and .config */
    uint64_t config;
    uint64_t config1, config2;    /* of a PMU's event */
    uint32_t modifiers;           /* EVENT_NO_USER … */
    uint32_t precise;             /* perf_event_attr.precise_ip, from 0 to 3 */
    struct tracepoint tracepoint; /* of an EVENT_TRACEPOINT */
    /* What event_list_resolve() looks up on this host; NULL where there is nothing to look up. */
    const char *device, *terms;              /* a PMU, and what is between the slashes but for our own terms */
    const char *cpus; /* of a PMU: the CPUs that have its counters, like "0-7,16"; NULL: all of them */
    const char *category, *point, *weight;   /* of a tracepoint; `weight` is the field that is added up, or NULL */
};

/* Bits of perf_event_attr, which perf sets by letters behind the name of an event. */
enum event_modifier {
    EVENT_NO_USER = 1,    /* exclude_user … */
    EVENT_NO_KERNEL = 2,
    EVENT_NO_HYPERVISOR = 4,
    EVENT_NO_GUEST = 8,
    EVENT_NO_HOST = 16,
    EVENT_NO_IDLE = 32,
    EVENT_PINNED = 64,
};

/* An event as the user requested it. Either the rate or the period is 0; the other is passed to the kernel. */
struct event {
    const struct event_source *source;
    uint64_t frequency_hz; /* ticks per second on each CPU */
    uint64_t period;       /* counts per tick, in the source's unit */
};

/*
 * The sources of events that are in no table belong to the list: event_list_deinit() frees them. A copy of the list
 * borrows them.
 */
struct event_list {
    struct event list[WIRE_EVENT_MAX];
    uint32_t count;
};
void event_list_deinit(struct event_list *events);

#define EVENT_FREQUENCY_MAX 1000000
#define EVENT_PERIOD_MAX (UINT64_C(1) << 62)

/* Whether the event ticks at a rate: a clock or a hardware counter. */
static inline bool event_has_rate(const struct event_source *source)
{
    return source->kind == EVENT_CLOCK || source->kind == EVENT_HARDWARE;
}
/* Whether the event has a counter on each CPU, or those of its PMU, opened with perf_event_open(2), at whose ticks samples are taken. */
static inline bool event_has_counter(const struct event_source *source)
{
    return event_has_rate(source) || source->kind == EVENT_COUNTED;
}
/* Whether the event counts occurrences, or bytes of them: it has a sample per so many, and no rate. */
static inline bool event_is_counted(const struct event_source *source)
{
    return source->kind == EVENT_COUNTED || source->kind == EVENT_TRACEPOINT || source->kind == EVENT_GROWTH;
}
/* Whether pycap decides when the event has a sample, and what it stands for; not the kernel. */
static inline bool event_period_is_ours(const struct event_source *source)
{
    return source->kind == EVENT_CLOCK || source->kind == EVENT_WAIT || source->kind == EVENT_TRACEPOINT ||
           source->kind == EVENT_GROWTH;
}
/* Whether the event is of memory: with it, how much memory processes have is recorded, too. */
static inline bool event_is_of_memory(const struct event_source *source)
{
    return source->kind == EVENT_GROWTH || !strcmp(source->unit, "faults");
}
/* The trace's name for what the event counts: an enum trace_event_kind. */
uint32_t event_trace_kind(const struct event_source *source);
/*
 * Whether the sampler sees every tick that the event's count makes. A clock goes on where its ticks are not wanted: by
 * ":u" in the kernel.
 */
static inline bool event_ticks_all(const struct event_source *source)
{
    return source->kind != EVENT_CLOCK || !source->modifiers;
}
/* Returns the source with this name or alias in the table of events, or NULL. */
const struct event_source *event_source(const char *name);

/* Longer texts of one event are refused. */
#define EVENT_TEXT_MAX 240
/*
 * Adds the events of a list like "cpu-clock,cycles:u,page-faults/period=1/,cpu/event=0x3c/,sched:sched_switch". An event
 * without a rate or period of its own has 0 in both until event_list_complete(). A usage error says what is wrong, and
 * what would be right. Neither the host nor its kernel is asked: event_list_resolve() does that.
 */
struct error *event_list_add(struct event_list *events, const char *text);
/* The same for events without terms, of which those that the list has already are left as they are. */
struct error *event_list_add_missing(struct event_list *events, const char *text);
/*
 * Sets the rate or period of every event that has neither. `frequency_hz` (-F) is for clocks and hardware counters,
 * `period` (-c) for counted events; if the list has no counted event, the period is for all events, as in perf. 0: the
 * option was not given. An empty list becomes cpu-clock.
 */
struct error *event_list_complete(struct event_list *events, uint64_t frequency_hz, uint64_t period);

/* Where event_list_resolve() looks. */
struct event_places {
    const char *devices; /* folder of PMUs; NULL: /sys/bus/event_source/devices */
    int tracefs;         /* top folder of tracefs, borrowed; -1: tracefs_open() */
};
/*
 * Looks up tracepoints and PMUs, and fills in what perf_event_open(2) and the sampler want to know of them. An error says
 * which event it is about, and what this host has instead. `places` may be NULL: those of this host.
 */
struct error *event_list_resolve(struct event_list *events, const struct event_places *places);

/* Whether a CPU has a counter for the event; false for an event without any. Call event_list_resolve() before. */
bool event_counts_on(const struct event_source *source, int cpu);

/* An error if the event cannot have this period, or any rate. */
struct error *event_check_period(const struct event_source *source, uint64_t period);
struct error *event_check_frequency(const struct event_source *source);
/* The weight of a sample: the event's period if it is fixed; else 1, and each sample carries its own period. */
uint64_t event_period(const struct event *event);
/*
 * Returns the event with its rate multiplied by `part` / `whole`, or its period divided by it. `part` is at most
 * `whole`. A rate is 1 Hz at least, and waits have a stack for each second at least, or as often as was asked.
 */
struct event event_slowed(const struct event *event, uint64_t part, uint64_t whole);
/* The `part` of `whole` from which on a smaller one slows none of the events further; at least 1. */
uint64_t event_list_least(const struct event_list *events, uint64_t whole);
/* Returns the index of the first event of a kind; EVENT_NONE: the list has none. */
#define EVENT_NONE UINT32_MAX
uint32_t event_list_first(const struct event_list *events, enum event_kind kind);
static inline uint32_t event_list_wait(const struct event_list *events)
{
    return event_list_first(events, EVENT_WAIT);
}
/* How many ticks a second a busy CPU has of an event; a guess for one that has no rate and is no clock. */
uint64_t event_hz(const struct event *event);
/* Formats how often an event ticks: "99 Hz", or "each 16 faults". Returns `out`. */
const char *event_rate_text(const struct event *event, char out[64]);
/* The highest rate of the events that have one, in Hz; 0: none has a rate. */
uint64_t event_list_frequency(const struct event_list *events);

#endif
