/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of events other than clocks and page faults, for make_trace: what any event of perf and a tracepoint may be called, and
 * the units that they come in; memory that a process was given; asyncio tasks that wait for each other.
 */
#ifndef TESTS_TOOLS_MADE_UP_EVENTS_H
#define TESTS_TOOLS_MADE_UP_EVENTS_H

#include "formats/base/clock.h"
#include "formats/trace/trace.h"

struct made_up {
    struct trace_writer *w;
    const uint32_t *threads, *tuples; /* borrowed */
    uint64_t thread_count, tuple_count;
};

static const struct made_up_event {
    const char *name, *unit;
    uint64_t frequency_hz, period;
    uint32_t kind;
    uint64_t step; /* how much more than `period` each of the first samples counts than the one before; 0: all the same */
} made_up_events[] = {
    {"syscalls:sys_enter_openat", "hits", 0, 1, TRACE_EVENT_COUNTED, 0},
    {"syscalls:sys_enter_write", "bytes", 0, 4096, TRACE_EVENT_COUNTED, 4096},
    {"sched:sched_stat_iowait", "ns", 0, 1000000, TRACE_EVENT_COUNTED, 1000000},
    {"r1a8:u", "events", 0, 100003, TRACE_EVENT_ON_CPU, 0},
    {"cpu/event=0x3c,umask=1/", "events", 99, 1, TRACE_EVENT_ON_CPU, 1000},
    {"L1-dcache-load-misses", "events", 0, 2000, TRACE_EVENT_ON_CPU, 0},
    {"memory-growth", "bytes", 0, 131072, TRACE_EVENT_COUNTED, 131072},
};

/* `count` samples of each event, 1 ms apart. Returns how many that are. */
static inline uint64_t made_up_put_events(const struct made_up *m, uint64_t time_ns, uint64_t count)
{
    enum { EVENTS = sizeof made_up_events / sizeof *made_up_events };

    for (uint32_t e = 0; e < EVENTS; e++) {
        const struct made_up_event *from = &made_up_events[e];
        struct trace_event event = {.name = trace_writer_cstr(m->w, from->name),
                                    .unit = trace_writer_cstr(m->w, from->unit),
                                    .frequency_hz = from->frequency_hz,
                                    .period = from->period,
                                    .kind = from->kind};
        trace_writer_put(m->w, TRACE_event, &event);
        for (uint64_t i = 0; i < count; i++) {
            struct trace_sample sample = {.time_ns = time_ns + (i + 1) * NS_PER_MS,
                                          .thread = m->threads[(i + e) % m->thread_count],
                                          .tuple = m->tuples[(i + e) % m->tuple_count],
                                          .flags = from->step ? TRACE_SAMPLE_VALUE : 0,
                                          .value = from->period + i % 3 * from->step};
            trace_writer_sample(m->w, event.id, &sample);
        }
    }
    return EVENTS * count;
}

/*
 * So many looks, 500 ms apart, at three tasks of the first thread. "outer" awaits "inner", which awaits a future: its stack is
 * that of both, outer's first. "ready" waits for the loop, at every other look. tuples: outer's stack, both, ready's.
 */
static inline uint64_t made_up_put_task_waits(const struct made_up *m, const uint32_t tuples[3], uint64_t time_ns, uint64_t looks)
{
    static const struct {
        const char *task, *wait;
    } tasks[] = {{"outer", "task"}, {"inner", "future"}, {"ready <go>", "event loop"}};
    const uint64_t interval_ns = 500 * NS_PER_MS;
    struct trace_event event = {.name = trace_writer_cstr(m->w, "task-wait"),
                                .unit = trace_writer_cstr(m->w, "ns"),
                                .period = interval_ns,
                                .kind = TRACE_EVENT_TASK};
    uint64_t count = 0;

    trace_writer_put(m->w, TRACE_event, &event);
    for (uint64_t look = 0; look < looks; look++) {
        for (int i = 0; i < 3 - (int)(look % 2); i++) {
            const uint64_t pairs[] = {trace_writer_cstr(m->w, trace_label_key(TRACE_LABEL_task)), trace_writer_cstr(m->w, tasks[i].task),
                                      trace_writer_cstr(m->w, trace_label_key(TRACE_LABEL_wait)), trace_writer_cstr(m->w, tasks[i].wait)};
            struct trace_label_set set = {.pairs = {pairs, 2}};
            struct trace_sample sample = {
                .time_ns = time_ns + (look + 1) * interval_ns,
                .thread = m->threads[0],
                .tuple = tuples[i],
                .flags = TRACE_SAMPLE_VALUE | TRACE_SAMPLE_LABELS | (i == 2 ? 0 : TRACE_SAMPLE_LASTS | (look ? TRACE_SAMPLE_CONTINUES : 0)),
                .value = i < 2 ? interval_ns : 20 * NS_PER_MS,
                .label_set = trace_writer_intern(m->w, TRACE_label_set, &set)};
            trace_writer_sample(m->w, event.id, &sample);
            count++;
        }
    }
    return count;
}

#endif
