/* SPDX-License-Identifier: Apache-2.0 */
/* The table of event sources, and the parser for `-e`. */
#include "capture/event/event.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"
#include "formats/trace/trace.h"

#define FREQUENCY_HZ 99
/* Default period of counted events: cheap enough at 100,000 page faults a second, fine enough for a short program. */
#define COUNTED_PERIOD 16
/* Default period of waits: what a sample at 99 Hz stands for. */
#define WAIT_PERIOD_NS (10 * NS_PER_MS)
/* Counted events may come at any rate; of this many a second on each CPU is thought. */
#define COUNTED_HZ 2000
/* The kernel silently raises shorter periods of clocks to this (perf_swevent_start_hrtimer(), Linux 5.10 to 6.18). */
#define CLOCK_PERIOD_MIN 10000

#define SOFTWARE(name, alias, unit, kind, config) {name, alias, unit, kind, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##config}
#define HARDWARE(name, alias, unit, config) {name, alias, unit, EVENT_HARDWARE, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##config}
/* Events with the unit "faults" are page faults that map memory; pysym shows them as bytes, by the host's page size. */
static const struct event_source sources[] = {
    SOFTWARE("cpu-clock", NULL, "ns", EVENT_CLOCK, CPU_CLOCK),
    SOFTWARE("task-clock", NULL, "ns", EVENT_CLOCK, TASK_CLOCK),
    SOFTWARE("page-faults", "faults", "faults", EVENT_COUNTED, PAGE_FAULTS),
    SOFTWARE("minor-faults", NULL, "faults", EVENT_COUNTED, PAGE_FAULTS_MIN),
    SOFTWARE("major-faults", NULL, "faults", EVENT_COUNTED, PAGE_FAULTS_MAJ),
    SOFTWARE("context-switches", "cs", "switches", EVENT_COUNTED, CONTEXT_SWITCHES),
    SOFTWARE("cpu-migrations", "migrations", "migrations", EVENT_COUNTED, CPU_MIGRATIONS),
    SOFTWARE("alignment-faults", NULL, "traps", EVENT_COUNTED, ALIGNMENT_FAULTS),
    SOFTWARE("emulation-faults", NULL, "traps", EVENT_COUNTED, EMULATION_FAULTS),
    HARDWARE("cycles", "cpu-cycles", "cycles", CPU_CYCLES),
    HARDWARE("instructions", NULL, "instructions", INSTRUCTIONS),
    HARDWARE("cache-references", NULL, "references", CACHE_REFERENCES),
    HARDWARE("cache-misses", NULL, "misses", CACHE_MISSES),
    HARDWARE("branches", "branch-instructions", "branches", BRANCH_INSTRUCTIONS),
    HARDWARE("branch-misses", NULL, "misses", BRANCH_MISSES),
    HARDWARE("bus-cycles", NULL, "cycles", BUS_CYCLES),
    HARDWARE("ref-cycles", NULL, "cycles", REF_CPU_CYCLES),
    {"off-cpu", NULL, "ns", EVENT_WAIT, 0, 0},
};
enum { SOURCE_COUNT = sizeof sources / sizeof *sources };

/* ---- parsing -e ---- */

static struct error *unknown_event(const char *name, size_t len)
{
    struct buf known = {0};

    for (size_t i = 0; i < SOURCE_COUNT; i++)
        buf_printf(&known, "%s%s", i ? ", " : "", sources[i].name);
    struct error *err = known.bad ? error_no_memory()
                                  : error_create(ERROR_USAGE, "event '%.*s' is not known; known are %s", (int)len, name,
                                                 buf_cstr(&known));
    buf_deinit(&known);
    return err;
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return word && strlen(word) == len && !memcmp(text, word, len);
}

static const struct event_source *source_of(const char *name, size_t len)
{
    for (size_t i = 0; i < SOURCE_COUNT; i++) {
        if (is_word(name, len, sources[i].name) || is_word(name, len, sources[i].alias))
            return &sources[i];
    }
    return NULL;
}

uint32_t event_trace_kind(const struct event_source *source)
{
    switch (source->kind) {
    case EVENT_CLOCK:
    case EVENT_HARDWARE:
        return TRACE_EVENT_ON_CPU;
    case EVENT_WAIT:
        return TRACE_EVENT_OFF_CPU;
    case EVENT_TASK:
        return TRACE_EVENT_TASK;
    default:
        return TRACE_EVENT_COUNTED;
    }
}

const struct event_source *event_source(const char *name)
{
    return source_of(name, strlen(name));
}

static struct error *find_source(const char *name, size_t len, const struct event_source **out)
{
    *out = source_of(name, len);
    if (*out)
        return NULL;
    if (memchr(name, ':', len))
        return error_create(ERROR_USAGE, "event '%.*s': modifiers (behind a colon) and tracepoints are not supported; say the "
                            "event's name alone (--no-kernel leaves out kernel frames)", (int)len, name);
    return unknown_event(name, len);
}

/* Parses a number, from 1 to `most`, that consists of digits only. */
static bool read_number(const char *text, size_t len, uint64_t most, uint64_t *out)
{
    uint64_t n = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || n > (most - (uint64_t)(text[i] - '0')) / 10)
            return false;
        n = n * 10 + (uint64_t)(text[i] - '0');
    }
    *out = n;
    return n > 0;
}

static struct error *check_period(const struct event_source *source, uint64_t period)
{
    if (source->kind == EVENT_CLOCK && period < CLOCK_PERIOD_MIN)
        return error_create(ERROR_USAGE, "a period of %s is a number of nanoseconds, %d at least: the kernel's clocks tick no "
                            "faster", source->name, CLOCK_PERIOD_MIN);
    return NULL;
}

static struct error *check_frequency(const struct event_source *source)
{
    if (source->kind == EVENT_WAIT)
        return error_create(ERROR_USAGE, "%s has no rate: -F and freq= are for clocks and hardware counters; use %s/period=N/ for "
                            "a stack each N nanoseconds that a call site waits", source->name, source->name);
    if (event_is_counted(source))
        return error_create(ERROR_USAGE, "%s is counted and has no rate: -F and freq= are for clocks and hardware counters; use "
                            "-c N or %s/period=N/ for a sample every N %s", source->name, source->name, source->unit);
    return NULL;
}

/* Parses one term of an event: "period=16" or "freq=99". */
static struct error *read_term(struct event *event, const char *text, size_t len)
{
    const char *equals = memchr(text, '=', len);
    size_t key = equals ? (size_t)(equals - text) : len, value = equals ? len - key - 1 : 0;
    bool is_period = is_word(text, key, "period"), is_frequency = is_word(text, key, "freq");

    if (!is_period && !is_frequency)
        return error_create(ERROR_USAGE, "unknown term '%.*s' of the event %s: write period=N%s", (int)len, text,
                            event->source->name, event_has_rate(event->source) ? " or freq=HZ" : "");
    if (event->period || event->frequency_hz)
        return error_create(ERROR_USAGE, "event %s: give either a period or a rate, and only once", event->source->name);
    if (is_frequency)
        TRY(check_frequency(event->source));
    if (!equals || !read_number(equals + 1, value, is_period ? EVENT_PERIOD_MAX : EVENT_FREQUENCY_MAX,
                                is_period ? &event->period : &event->frequency_hz))
        return error_create(ERROR_USAGE, "event %s: '%.*s' is no %s", event->source->name, (int)len, text,
                            is_period ? "period: a number of counts, 1 at least" : "rate: samples a second, 1 to 1000000");
    return is_period ? check_period(event->source, event->period) : NULL;
}

/* Parses an event of length `len`: "NAME" or "NAME/TERM,TERM/". */
static struct error *read_event(struct event_list *events, const char *text, size_t len)
{
    const char *slash = memchr(text, '/', len);
    size_t name = slash ? (size_t)(slash - text) : len;
    struct event event = {0};

    if (!name)
        return error_create(ERROR_USAGE, "-e: an event has no name: a list is like cpu-clock,page-faults/period=1/");
    TRY(find_source(text, name, &event.source));
    for (size_t at = name + 1; slash && len > name + 2 && at < len;) {
        size_t term = strcspn(text + at, ",/");
        TRY(read_term(&event, text + at, term));
        at += term + 1;
    }
    for (uint32_t i = 0; i < events->count; i++) {
        if (events->list[i].source == event.source)
            return error_create(ERROR_USAGE, "-e: %s is named twice", event.source->name);
    }
    if (events->count == WIRE_EVENT_MAX)
        return error_create(ERROR_USAGE, "-e: at most %d events at once", WIRE_EVENT_MAX);
    events->list[events->count++] = event;
    return NULL;
}

struct error *event_list_add(struct event_list *events, const char *text)
{
    for (;;) {
        size_t len = strcspn(text, ",/");
        if (text[len] == '/') {
            size_t terms = strcspn(text + len + 1, "/");
            if (!text[len + 1 + terms])
                return error_create(ERROR_USAGE, "-e: '%s' lacks the second slash: NAME/period=N/", text);
            len += terms + 2;
            if (text[len] && text[len] != ',')
                return error_create(ERROR_USAGE, "-e: '%s': after the second slash there must be a comma or the end", text);
        }
        TRY(read_event(events, text, len));
        if (!text[len])
            return NULL;
        text += len + 1;
    }
}

struct error *event_list_add_missing(struct event_list *events, const char *text)
{
    for (size_t len; *text; text += len + (text[len] == ',')) {
        const struct event_source *source;
        bool there = false;
        len = strcspn(text, ",");
        TRY(find_source(text, len, &source));
        for (uint32_t i = 0; i < events->count; i++)
            there |= events->list[i].source == source;
        if (!there)
            TRY(read_event(events, text, len));
    }
    return NULL;
}

/* ---- rates and periods ---- */

static struct error *complete(struct event *event, uint64_t frequency_hz, uint64_t period)
{
    if (event->frequency_hz || event->period)
        return NULL;
    if (period) {
        event->period = period;
        return check_period(event->source, period);
    }
    if (event_is_counted(event->source))
        event->period = COUNTED_PERIOD;
    else if (event->source->kind == EVENT_WAIT)
        event->period = WAIT_PERIOD_NS;
    else
        event->frequency_hz = frequency_hz ? frequency_hz : FREQUENCY_HZ;
    return NULL;
}

struct error *event_list_complete(struct event_list *events, uint64_t frequency_hz, uint64_t period)
{
    uint32_t counted = 0, rated = 0;

    if (!events->count)
        events->list[events->count++].source = &sources[0];
    for (uint32_t i = 0; i < events->count; i++) {
        counted += event_is_counted(events->list[i].source);
        rated += event_has_rate(events->list[i].source);
    }
    if (frequency_hz && !rated)
        return check_frequency(events->list[0].source);
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
    if (event->source->kind != EVENT_WAIT)
        return EVENT_PERIOD_MAX;
    return event->period > NS_PER_S ? event->period : NS_PER_S;
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
        uint64_t longest = longest_period(event);
        slowed.period = part == whole ? event->period : period < (double)longest ? (uint64_t)(period + 0.5) : longest;
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
    return event->source->kind == EVENT_CLOCK ? NS_PER_S / event->period : COUNTED_HZ;
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
