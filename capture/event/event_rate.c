/* SPDX-License-Identifier: Apache-2.0 */
/* The rates and periods of events: defaults, and what becomes of them when a capture has to be slower. */
#include "capture/event/event.h"

#include <inttypes.h>
#include <stdio.h>

#include "capture/event/event_table.h"
#include "formats/base/clock.h"

#define FREQUENCY_HZ 99
/* Default period of counted events: cheap enough at 100,000 page faults a second, fine enough for a short program. */
#define COUNTED_PERIOD 16
/* Default period of waits: what a sample at 99 Hz stands for. */
#define WAIT_PERIOD_NS (10 * NS_PER_MS)
/* Default time between two looks at asyncio tasks, and the least; the budget makes it no longer than the most. */
#define TASK_PERIOD_NS (100 * NS_PER_MS)
#define TASK_PERIOD_MIN 1000000
#define TASK_PERIOD_MAX (10 * NS_PER_S)
/* Default period of growth: less than what allocators take at once, so nearly each of their calls has a sample. */
#define GROWTH_PERIOD_BYTES 65536
/* Counted events may come at any rate; of this many a second on each CPU is thought. */
#define COUNTED_HZ 2000
/* The kernel silently raises shorter periods of clocks to this (perf_swevent_start_hrtimer(), Linux 5.10 to 6.18). */
#define CLOCK_PERIOD_MIN 10000

struct error *event_check_period(const struct event_source *source, uint64_t period)
{
    if (source->kind == EVENT_CLOCK && period < CLOCK_PERIOD_MIN)
        return error_create(ERROR_USAGE, "a period of %s is a number of nanoseconds, %d at least: the kernel's clocks tick no "
                            "faster", source->name, CLOCK_PERIOD_MIN);
    if (source->kind == EVENT_TASK && period < TASK_PERIOD_MIN)
        return error_create(ERROR_USAGE, "a period of %s is the time between two looks at all tasks in nanoseconds, %d at least",
                            source->name, TASK_PERIOD_MIN);
    return NULL;
}

struct error *event_check_frequency(const struct event_source *source)
{
    if (source->kind == EVENT_WAIT)
        return error_create(ERROR_USAGE, "%s has no rate: -F and freq= are for clocks and hardware counters; use %s/period=N/ for "
                            "a stack each N nanoseconds that a call site waits", source->name, source->name);
    if (source->kind == EVENT_TASK)
        return error_create(ERROR_USAGE, "%s has no rate: -F and freq= are for clocks and hardware counters; use %s/period=N/ for "
                            "a look at all tasks each N nanoseconds", source->name, source->name);
    if (event_is_counted(source))
        return error_create(ERROR_USAGE, "%s is counted and has no rate: -F and freq= are for clocks and hardware counters; use "
                            "-c N or %s/period=N/ for a sample every N %s", source->name, source->name, source->unit);
    return NULL;
}

/* The period that an event has unless another one is asked for; 0: it has a rate. */
static uint64_t default_period(const struct event_source *source)
{
    switch (source->kind) {
    case EVENT_COUNTED:
        return COUNTED_PERIOD;
    case EVENT_TRACEPOINT:
        return 1;
    case EVENT_GROWTH:
        return GROWTH_PERIOD_BYTES;
    case EVENT_WAIT:
        return WAIT_PERIOD_NS;
    case EVENT_TASK:
        return TASK_PERIOD_NS;
    default:
        return 0;
    }
}


static struct error *complete(struct event *event, uint64_t frequency_hz, uint64_t period)
{
    if (event->frequency_hz || event->period)
        return NULL;
    if (period) {
        event->period = period;
        return event_check_period(event->source, period);
    }
    event->period = default_period(event->source);
    if (!event->period)
        event->frequency_hz = frequency_hz ? frequency_hz : FREQUENCY_HZ;
    return NULL;
}

struct error *event_list_complete(struct event_list *events, uint64_t frequency_hz, uint64_t period)
{
    uint32_t counted = 0, rated = 0;

    if (!events->count)
        events->list[events->count++].source = event_table_row(0);
    for (uint32_t i = 0; i < events->count; i++) {
        counted += event_is_counted(events->list[i].source);
        rated += event_has_rate(events->list[i].source);
    }
    if (frequency_hz && !rated)
        return event_check_frequency(events->list[0].source);
    if (frequency_hz && period && !counted)
        return error_create(ERROR_USAGE, "either -F or -c: %s has a rate or a period (-c beside -F is for events that are "
                            "counted, like page-faults)", events->list[0].source->name);
    for (uint32_t i = 0; i < events->count; i++) {
        bool takes_period = !counted || event_is_counted(events->list[i].source);
        TRY(complete(&events->list[i], frequency_hz, takes_period ? period : 0));
    }
    return NULL;
}

uint64_t event_period(const struct event *event)
{
    if (event->period)
        return event->period;
    return event_period_is_ours(event->source) ? NS_PER_S / event->frequency_hz : 1;
}

/* Up to where a period can be slowed: no more than the kernel accepts, or so that there are still stacks of waits. */
static uint64_t longest_period(const struct event *event)
{
    uint64_t longest = EVENT_PERIOD_MAX;

    if (event->source->kind == EVENT_WAIT)
        longest = NS_PER_S;
    else if (event->source->kind == EVENT_TASK)
        longest = TASK_PERIOD_MAX;
    return event->period > longest ? event->period : longest;
}

struct event event_slowed(const struct event *event, uint64_t part, uint64_t whole)
{
    struct event slowed = *event;

    if (event->frequency_hz) {
        slowed.frequency_hz = event->frequency_hz * part / whole;
        if (!slowed.frequency_hz)
            slowed.frequency_hz = 1;
    } else {
        double period = (double)event->period * (double)whole / (double)(part ? part : 1);
        uint64_t longest = longest_period(event), nearest = period < (double)longest ? (uint64_t)(period + 0.5) : longest;
        /* Where each one is sampled, the nearest is at times what it was. */
        slowed.period = nearest + (part != whole && nearest == event->period && nearest < longest);
    }
    return slowed;
}

uint64_t event_list_least(const struct event_list *events, uint64_t whole)
{
    uint64_t least = whole;

    for (uint32_t i = 0; i < events->count; i++) {
        const struct event *event = &events->list[i];
        double part = event->frequency_hz ? 1.0 / (double)event->frequency_hz
                                          : (double)event->period / (double)longest_period(event);
        if (part * (double)whole < (double)least)
            least = (uint64_t)(part * (double)whole);
    }
    return least ? least : 1;
}

uint64_t event_hz(const struct event *event)
{
    if (event->frequency_hz)
        return event->frequency_hz;
    if (event->source->kind == EVENT_CLOCK || event->source->kind == EVENT_TASK)
        return NS_PER_S / event->period;
    return COUNTED_HZ;
}

uint32_t event_list_first(const struct event_list *events, enum event_kind kind)
{
    for (uint32_t i = 0; i < events->count; i++) {
        if (events->list[i].source->kind == kind)
            return i;
    }
    return EVENT_NONE;
}

const char *event_rate_text(const struct event *event, char out[64])
{
    if (event->frequency_hz)
        snprintf(out, 64, "%" PRIu64 " Hz", event->frequency_hz);
    else
        snprintf(out, 64, "each %" PRIu64 " %s", event->period, event->source->unit);
    return out;
}

uint64_t event_list_frequency(const struct event_list *events)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < events->count; i++) {
        if (events->list[i].frequency_hz > most)
            most = events->list[i].frequency_hz;
    }
    return most;
}
