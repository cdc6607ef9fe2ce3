/* SPDX-License-Identifier: Apache-2.0 */
/* What a capture may cost: it is looked at once a second, what can be forgotten is, and the rate follows. */
#include "capture/session/session_budget.h"

#include <inttypes.h>
#include <malloc.h>
#include <unistd.h>

#include "capture/host/errand.h"
#include "capture/host/messages.h"
#include "capture/session/flight.h"
#include "capture/session/session_drain.h"
#include "capture/session/session_files.h"

/* Kept of code objects; a large host's programs have some 15 MiB. */
#define CODES_MAX_BYTES (UINT64_C(32) << 20)
/* How often what is known is forgotten for the sake of memory while the limit is near: it has to be met again. */
#define FORGET_NS (10 * NS_PER_S)

struct budget_use session_use(const struct session *s, uint64_t time_ns)
{
    uint64_t sampler_ns = 0, look_ns = 0, sampled = 0, lost = 0;

    if (s->sampler)
        sampler_cpu_time(s->sampler, &sampler_ns, &look_ns);
    for (uint32_t i = 0; s->sampler && i < s->events.count; i++) {
        uint64_t stats[WIRE_EVENT_STAT_COUNT];
        if (i == event_list_wait(&s->events))
            continue;
        sampler_event_stats(s->sampler, i, stats);
        sampled += stats[WIRE_EVENT_SAMPLED];
        lost += stats[WIRE_EVENT_RING_FULL];
    }
    return (struct budget_use){
        .time_ns = time_ns,
        .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + errand_cpu_ns() + outputs_cpu_ns(s->outputs) + sampler_ns,
        .fixed_ns = look_ns,
        .sampled = sampled,
        .lost = lost,
        .bytes = session_bytes(s),
        .memory = s->held_bytes,
    };
}

/* From here on the limit is near. */
static uint64_t near_limit(const struct session *s)
{
    return s->o->max_memory - s->o->max_memory / 8;
}

struct error *session_check_memory(const struct session *s)
{
    if (!s->o->max_memory)
        return NULL;
    uint64_t held = procfs_own_resident(), least = held + held / 2;
    if (least <= s->o->max_memory)
        return NULL;
    return error_create(ERROR_USAGE,
                        "--max-memory: pycap holds %" PRIu64 " MiB before the first sample, so allow %" PRIu64
                        " MiB at least (a smaller --ring-size and --unwind-memory take less)",
                        held >> 20, (least >> 20) + 1);
}

static struct error *forget_codes(struct session *s)
{
    if (s->sampler) {
        /* What is sampled from now on brings its code objects again; what was before refers to those that are known. */
        sampler_forget_codes(s->sampler);
        uint64_t until_ns = now_ns();
        nanosleep(&(struct timespec){.tv_nsec = EVENT_DELAY_NS}, NULL);
        TRY(session_drain(s, until_ns));
    }
    trace_builder_forget_codes(s->builder);
    codes_clear(s->codes);
    return NULL;
}

/* What pycap holds, with what a slow reader leaves with the process that writes. */
static uint64_t resident(const struct session *s)
{
    return procfs_own_resident() + (session_has_reader(s) ? outputs_backlog(s->outputs, false).len_bytes : 0);
}

struct error *session_limit_memory(struct session *s, uint64_t time_ns)
{
    if (s->o->max_memory) {
        s->held_bytes = resident(s);
        if (s->held_bytes > near_limit(s) && flight_forget(s, s->held_bytes - near_limit(s))) {
            malloc_trim(0);
            s->held_bytes = resident(s);
        }
        if (s->held_bytes > s->o->max_memory ||
            (s->held_bytes > near_limit(s) && time_ns - s->forgotten_ns >= FORGET_NS)) {
            s->forgotten_ns = time_ns;
            /* Near the limit the processes with most code give up half of it, beyond it everybody gives up all. */
            TRY(s->held_bytes > s->o->max_memory
                    ? forget_codes(s)
                    : trace_builder_limit_codes(s->builder,
                                                (codes_bytes(s->codes) + trace_builder_codes_bytes(s->builder)) / 2));
            if (trace_writer_epoch_fits(s->writer))
                TRY(trace_builder_begin_epoch(s->builder, time_ns));
            malloc_trim(0);
            s->held_bytes = resident(s);
            return NULL;
        }
    }
    /* Programs may make code for ever: what is kept of it has a limit, and is met again where it is still in use. */
    if (codes_bytes(s->codes) + trace_builder_codes_bytes(s->builder) < CODES_MAX_BYTES)
        return NULL;
    return trace_builder_limit_codes(s->builder, CODES_MAX_BYTES / 2);
}

/* Each event is slowed by the same part of what was asked of it: by its rate, or by its period. */
static struct error *change_event(struct session *s, uint32_t i, uint64_t time_ns, const char *why)
{
    struct event asked = s->o->events.list[i];

    asked.source = s->events.list[i].source;
    bool tasks = asked.source->kind == EVENT_TASK;
    if (s->proc && !tasks)
        asked = (struct event){.source = asked.source, .frequency_hz = session_looks_hz(s->o)};
    struct event to = event_slowed(&asked, s->budget.rate, s->budget.options.rate);
    if (tasks)
        task_looks_set_period(s->tasks, to.period);
    else if (s->proc)
        proc_sampler_set_rate(s->proc, to.frequency_hz);
    else
        TRY(sampler_change_event(s->sampler, i, &to));
    s->events.list[i] = to;
    trace_builder_period(s->builder, i, time_ns, event_period(&to), why);
    return NULL;
}

void session_print_rates(const struct session *s, FILE *out)
{
    for (uint32_t i = 0; i < s->events.count; i++) {
        const struct event *event = &s->events.list[i];
        char text[64];
        messages_write(out, "%s%s%s%s", i ? ", " : "", s->events.count > 1 ? event->source->name : "",
                       s->events.count > 1 ? " " : "", event_rate_text(event, text));
    }
}

void session_print_fixed(const struct session *s, FILE *out)
{
    bool waits = event_list_wait(&s->events) != EVENT_NONE;

    messages_write(out, "To %s alone takes %.1f %% of a CPU, so --max-cpu %g cannot be kept; record fewer processes, or leave "
                   "%s out.\n", waits ? "follow switches between threads" : "count hits of tracepoints", 100 * s->budget.fixed,
                   100 * s->o->max_cpu, waits ? "off-cpu" : "those that are hit most");
}

/* Starts a message to the user in the middle of a recording. */
static FILE *begin_message(const struct session *s)
{
    if (isatty(fileno(s->o->messages)))
        messages_clear_line(s->o->messages);
    messages_write(s->o->messages, "pycap: ");
    return s->o->messages;
}

struct error *session_keep_budget(struct session *s, uint64_t time_ns)
{
    struct budget_use use = session_use(s, time_ns);
    bool known = s->budget.fixed > 0;
    enum budget_reason reason = budget_step(&s->budget, &use);

    if (s->budget.fixed > 0 && !known && !s->o->quiet)
        session_print_fixed(s, begin_message(s));
    if (reason == BUDGET_UNCHANGED)
        return NULL;
    if (reason == BUDGET_END) {
        s->stop = true;
        s->reason = TRACE_END_FULL;
        return NULL;
    }
    for (uint32_t i = 0; i < s->events.count; i++)
        TRY(change_event(s, i, time_ns, budget_reason_text(reason)));
    if (!s->o->quiet) {
        session_print_rates(s, begin_message(s));
        messages_write(s->o->messages, " from here on: %s\n", budget_reason_text(reason));
    }
    return NULL;
}
