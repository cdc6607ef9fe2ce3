/* SPDX-License-Identifier: Apache-2.0 */
/* A small model for tests of the live view, and samples of it. */
#ifndef TESTS_UNIT_LIVE_MODEL_H
#define TESTS_UNIT_LIVE_MODEL_H

#include "formats/base/clock.h"
#include "symbolize/live/rows.h"
#include "tests/unit/test.h"

/* main calls work, which calls compute of a library; work calls itself from another line; and waits in compute. */
enum { STACK_MAIN, STACK_WORK, STACK_COMPUTE, STACK_AGAIN, STACK_WAITS, MODEL_STACKS };
enum { LIVE_EVENT_CPU, LIVE_EVENT_WAITS, LIVE_EVENT_BLAME, MODEL_EVENTS };

static const struct emit_frame live_frames[] = {
    {.kind = EMIT_PYTHON, .function = "main", .file = "/srv/app.py", .module = "", .line = 3, .function_line = 1},
    {.kind = EMIT_PYTHON, .function = "work", .file = "/srv/app.py", .module = "", .line = 12, .function_line = 10},
    {.kind = EMIT_NATIVE, .function = "compute", .file = "", .module = "/usr/lib/libfast.so"},
    {.kind = EMIT_PYTHON, .function = "work", .file = "/srv/app.py", .module = "", .line = 14, .function_line = 10},
    {.kind = EMIT_MARK, .function = "[wait: lock]", .file = "", .module = "", .wait = "lock"},
};
static const struct emit_stack live_stacks[MODEL_STACKS] = {
    {EMIT_NO_STACK, 0, 1}, {STACK_MAIN, 1, 2}, {STACK_WORK, 2, 3}, {STACK_WORK, 3, 3}, {STACK_COMPUTE, 4, 4},
};
static const struct emit_process live_processes[] = {{.pid = 100, .name = "shop", .comm = "shop"}, {.pid = 200, .name = "mail", .comm = "mail"}};
static const struct emit_thread live_threads_of_model[] = {{0, 100, "MainThread"}, {0, 101, "worker"}, {1, 200, "MainThread"}};
static const struct emit_event live_events[MODEL_EVENTS] = {
    {.name = "cpu-clock", .unit = "ns", .kind = EVENT_CPU_TIME},
    {.name = "off-cpu", .unit = "ns", .kind = EVENT_OFF_CPU},
    {.name = "gil-blame", .unit = "ns", .kind = EVENT_BLAME},
};
static const struct emit_label_set live_label_sets[] = {{0}, {.wait = EMIT_WAIT_LOCK}};

static const struct emit_model live_model = {
    .frames = live_frames, .frame_count = 5,
    .stacks = live_stacks, .stack_count = MODEL_STACKS,
    .processes = live_processes, .process_count = 2,
    .threads = live_threads_of_model, .thread_count = 3,
    .events = live_events, .event_count = MODEL_EVENTS,
    .label_sets = live_label_sets, .label_set_count = 2,
    .filters = "",
};

/* A tally of intervals of a second, to which samples of that model may come. */
static inline struct live_tally *new_tally(void)
{
    struct live_tally *t;

    assert_null(live_tally_create(NS_PER_S, &t));
    assert_null(live_tally_model(t, &live_model));
    live_tally_time(t, 1000 * NS_PER_S);
    return t;
}

/* A sample of 10 ms, at so many ms after the start. */
static inline void add_sample(struct live_tally *t, uint64_t ms, uint32_t event, uint32_t thread, uint32_t stack)
{
    const struct emit_sample s = {.time_ns = 1000 * NS_PER_S + ms * NS_PER_MS, .value = 10 * NS_PER_MS, .thread = thread, .event = event,
                                  .stack = stack, .label_set = stack == STACK_WAITS, .gil = thread ? EMIT_GIL_NOT_HELD : EMIT_GIL_HELD};

    assert_null(live_tally_sample(t, &s));
}

/* The recorder's clock moves on to so many ms after the start, and there a block ends. */
static inline void pass_time(struct live_tally *t, uint64_t ms)
{
    live_tally_time(t, 1000 * NS_PER_S + ms * NS_PER_MS);
    assert_null(live_tally_block(t));
}

#endif
