/* SPDX-License-Identifier: Apache-2.0 */
/* What threads and tasks did at the end: -f threads, of samples made by hand. */
#include "tests/unit/emit_fixture.h"

#include <string.h>

enum { NO_LABELS, READ, LOCK, PREEMPTED, IN_TASK, OUTER, INNER, SAME, BLOCKED_SETS };
enum { CPU, OFF_CPU, TASKS, BLAME };

#define MS UINT64_C(1000000)
#define BEGIN (1000 * MS)
#define END (11000 * MS)

static const struct emit_label labels[] = {{"wait", "blocked"}, {"system call", "read"}, {"wait", "lock"}, {"wait", "preempted"},
                                           {"asyncio task", "now"},
                                           {"asyncio task", "out\x1b[1mer"}, {"wait", "task"},
                                           {"asyncio task", "inner"}, {"wait", "future"}, {"awaited by", "out\x1b[1mer and 2 more"},
                                           {"asyncio task", "same"}, {"wait", "future"}};
static const struct emit_label_set sets[] = {[READ] = {labels, 2, .wait = EMIT_WAIT_BLOCKED, .system_call = "read"},
                                             [LOCK] = {labels + 2, 1, .wait = EMIT_WAIT_LOCK},
                                             [PREEMPTED] = {labels + 3, 1, .wait = EMIT_WAIT_PREEMPTED},
                                             [IN_TASK] = {labels + 4, 1},
                                             [OUTER] = {labels + 5, 2, .wait = EMIT_WAIT_TASK},
                                             [INNER] = {labels + 7, 3, .wait = EMIT_WAIT_FUTURE},
                                             [SAME] = {labels + 10, 2, .wait = EMIT_WAIT_FUTURE},
                                             [BLOCKED_SETS] = {0}};
static const struct emit_capture capture = {.name = "test", .hostname = "h", .kernel_release = "", .machine = "", .cpu_model = "",
                                            .recorder = "", .monotonic_ns = BEGIN, .realtime_ns = UINT64_C(1700000000000000000),
                                            .start_ns = BEGIN, .duration_ns = END - BEGIN};

struct scene {
    struct synthetic s;
    uint32_t main, worker, process; /* two threads of the process */
    uint32_t run, idle, outer, inner;
};

static uint32_t mark(struct synthetic *s, uint32_t stack, const char *text, const char *wait)
{
    return synthetic_stack(s, stack, synthetic_frame(s, (struct emit_frame){.kind = EMIT_MARK, .function = text, .wait = wait}));
}

static void setup(struct scene *c)
{
    *c = (struct scene){0};
    struct synthetic *s = &c->s;
    s->model.label_sets = sets;
    s->model.label_set_count = sizeof sets / sizeof *sets;
    s->model.captures = &capture;
    s->model.capture_count = 1;
    synthetic_event(s, "cpu-clock", "ns", true);
    s->events.data[synthetic_event(s, "off-cpu", "ns", true)].kind = EVENT_OFF_CPU;
    uint32_t tasks = synthetic_event(s, "task-wait", "ns", true), blame = synthetic_event(s, "gil-blame", "ns", true);
    s->events.data[tasks].kind = EVENT_TASK_WAIT;
    s->events.data[blame].kind = EVENT_BLAME;
    c->process = synthetic_process(s, 100, "app.py");
    s->processes.data[c->process].python_version = 0x030c01f0;
    c->main = synthetic_thread(s, c->process, 100, "MainThread");
    c->worker = synthetic_thread(s, c->process, 101, "wor\x1bker");
    uint32_t module = synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "<module>", "/srv/app.py", 30, 0, 1));
    c->run = synthetic_stack(s, module, synthetic_python(s, "run", "/srv/app.py", 7, 0, 5));
    uint32_t idle = synthetic_stack(s, module, synthetic_python(s, "get", "/srv/queue.py", 9, 0, 5));
    uint32_t kernel = synthetic_stack(s, idle, synthetic_kernel(s, "schedule", "[kernel.kallsyms]", 0xffffffff81000000, 1));
    c->idle = mark(s, kernel, "[wait: lock]", "lock");
    uint32_t outer = synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "outer", "/srv/app.py", 11, 0, 10));
    uint32_t inner = synthetic_stack(s, outer, synthetic_python(s, "inner", "/srv/app.py", 21, 0, 20));
    c->outer = mark(s, outer, "[wait: task]", "task");
    c->inner = mark(s, inner, "[wait: future]", "future");
}

static void at(struct scene *c, uint64_t time_ns, uint32_t thread, uint32_t event, uint32_t stack, uint32_t set, uint64_t value, bool lasts)
{
    synthetic_sample(&c->s, (struct emit_sample){.time_ns = time_ns, .value = value, .thread = thread, .event = event, .stack = stack,
                                                 .label_set = set, .lasts = lasts});
}

static struct emit_sample *last(struct scene *c)
{
    return &c->s.samples.data[c->s.samples.count - 1];
}

#define HEAD(n) "Process 100 app.py, CPython 3.12.1: " n " at 2023-11-14 22:13:30.000 UTC,\n  the most recent call first\n"
#define RUN "      run (app.py:7)\n      <module> (app.py:30)\n"
#define IDLE "      get (queue.py:9)\n      <module> (app.py:30)\n"

/* Who runs comes first; the kernel's frames of a wait are left out; names cannot reach the terminal. */
TEST(states)
{
    struct scene c;

    setup(&c);
    at(&c, 5000 * MS, c.main, CPU, c.run, NO_LABELS, 10 * MS, false);
    at(&c, 7000 * MS, c.main, OFF_CPU, c.idle, LOCK, 1000 * MS, true);
    at(&c, 8000 * MS, c.main, OFF_CPU, c.idle, LOCK, 1000 * MS, true);
    last(&c)->continues = true;
    at(&c, END, c.main, OFF_CPU, c.idle, LOCK, 3000 * MS, true);
    last(&c)->continues = true;
    at(&c, END - 2 * MS, c.worker, CPU, c.run, IN_TASK, 10 * MS, false);
    last(&c)->gil = EMIT_GIL_HELD;
    expect(&c.s, "threads", plain,
           HEAD("2 threads")
           "\n  101 wor_ker, task now: on CPU, holds the GIL\n" RUN
           "\n  100 MainThread: waits for a lock, 5.0 s\n" IDLE);
    synthetic_deinit(&c.s);
}

/* A wait that is over: its thread runs, and its stack is older. */
TEST(wait_is_over)
{
    struct scene c;

    setup(&c);
    at(&c, END - 500 * MS, c.main, OFF_CPU, c.idle, READ, 1000 * MS, false);
    at(&c, END, c.worker, OFF_CPU, c.idle, READ, 9500 * MS, true);
    expect(&c.s, "threads", plain,
           HEAD("2 threads")
           "\n  100 MainThread: ran since it was last seen blocked in read, 500 ms before the end\n" IDLE
           "\n  101 wor_ker: blocked in read, at least 9.5 s\n" IDLE);
    synthetic_deinit(&c.s);
}

/* The newest stack counts, not one of another moment; a preempted thread is where it was. */
TEST(newest)
{
    struct scene c;

    setup(&c);
    at(&c, END - 9 * MS, c.main, OFF_CPU, c.run, PREEMPTED, MS, false);
    at(&c, END - 8 * MS, c.main, OFF_CPU, c.idle, READ, MS, false);
    last(&c)->owed = true;
    at(&c, END - 7 * MS, c.main, BLAME, c.idle, NO_LABELS, MS, false);
    at(&c, END - 10 * MS, c.main, CPU, c.idle, NO_LABELS, MS, false); /* late */
    at(&c, END, c.worker, OFF_CPU, c.idle, LOCK, MS, true);
    expect(&c.s, "threads", plain, HEAD("2 threads") "\n  100 MainThread: on CPU\n" RUN "\n  101 wor_ker: waits for a lock, at least 1 ms\n" IDLE);
    synthetic_deinit(&c.s);
}

/* A part of a wait whose begin is not in the recording, as of another kind, does not say since when it lasts. */
TEST(since)
{
    struct scene c;

    setup(&c);
    at(&c, END - 30 * MS, c.main, OFF_CPU, c.idle, LOCK, 20 * MS, true);
    at(&c, END - 29 * MS, c.main, OFF_CPU, c.idle, PREEMPTED, MS, true);
    last(&c)->continues = true;
    at(&c, END, c.main, OFF_CPU, c.idle, LOCK, 29 * MS, true);
    last(&c)->continues = true;
    assert_true(contains(&c.s, "threads", plain, "\n  100 MainThread: waits for a lock, at least 29 ms\n"));
    synthetic_deinit(&c.s);
}

/* Threads that are alike are one entry, unless each is asked for; who has ended is counted. */
TEST(alike)
{
    struct scene c;
    struct emit_options each = plain;

    setup(&c);
    at(&c, 2000 * MS, c.main, CPU, c.run, NO_LABELS, MS, false);
    for (uint32_t i = 0; i < 10; i++)
        at(&c, END, synthetic_thread(&c.s, c.process, 200 + i, "pool"), OFF_CPU, c.idle, LOCK, (1 + i) * 100 * MS, true);
    expect(&c.s, "threads", plain,
           HEAD("10 threads")
           "\n  10 threads: wait for a lock, at least 100 ms to 1.0 s\n"
           "    200 pool, 201 pool, 202 pool, 203 pool, 204 pool, 205 pool, 206 pool, 207 pool, and 2 more\n" IDLE
           "\n  and 1 thread without a sample in the last 2 s, which probably ended\n");
    each.merge = EMIT_MERGE_THREAD;
    assert_true(contains(&c.s, "threads", each, "\n  209 pool: waits for a lock, at least 1.0 s\n"));
    synthetic_deinit(&c.s);
}

/* Without waits nothing says that a thread is gone; a process that has ended is. */
TEST(without_waits)
{
    struct scene c;

    setup(&c);
    at(&c, 2000 * MS, c.main, CPU, c.run, NO_LABELS, MS, false);
    at(&c, 3000 * MS, synthetic_thread(&c.s, synthetic_process(&c.s, 300, "gone"), 300, "gone"), CPU, c.run, NO_LABELS, MS, false);
    c.s.processes.data[1].ended = true;
    expect(&c.s, "threads", plain,
           HEAD("1 thread") "\n  100 MainThread: last seen on CPU, 9.0 s before the end\n" RUN
           "\nNo waits were recorded (pycap record --wall): each thread is shown where it last ran.\n");
    c.s.processes.data[0].ended = true;
    expect(&c.s, "threads", plain, "No process was left at the end: 2 processes had ended.\n");
    synthetic_deinit(&c.s);
}

/* What the kernel said of threads at the end: of one without a stack, and of one that slept after its last stack. */
TEST(kernel_states)
{
    struct scene c;

    setup(&c);
    uint32_t none = synthetic_thread(&c.s, c.process, 102, "none"), leader = synthetic_thread(&c.s, c.process, 103, "ended");
    uint32_t starved = synthetic_thread(&c.s, c.process, 104, "starved"), asleep = synthetic_thread(&c.s, c.process, 105, "asleep");
    const struct emit_thread_state states[] = {
        {.thread = c.main, .state = EMIT_STATE_SLEEPS, .time_ns = END, .since_ns = 500 * MS},
        {.thread = c.worker, .state = EMIT_STATE_STOPPED, .time_ns = END, .since_ns = END - 30 * MS},
        {.thread = none, .state = EMIT_STATE_UNINTERRUPTIBLE, .time_ns = END, .since_ns = END - 4000 * MS},
        {.thread = leader, .state = EMIT_STATE_ENDED, .time_ns = END},
        {.thread = starved, .state = EMIT_STATE_RUNS, .time_ns = END},
        {.thread = asleep, .state = EMIT_STATE_SLEEPS, .time_ns = END},
    };
    c.s.model.thread_states = states;
    c.s.model.thread_state_count = 6;
    at(&c, END, c.main, OFF_CPU, c.idle, LOCK, 10000 * MS, true); /* it is known since when, which is before the recording */
    at(&c, END - 4000 * MS, starved, CPU, c.run, NO_LABELS, MS, false); /* not gone, though it was not seen for long */
    at(&c, END - 50 * MS, asleep, CPU, c.run, NO_LABELS, MS, false); /* it ran then, and sleeps now, since nobody knows when */
    last(&c)->gil = EMIT_GIL_HELD;
    at(&c, END - 40 * MS, c.worker, CPU, c.run, NO_LABELS, MS, false);
    expect(&c.s, "threads", plain,
           HEAD("6 threads")
           "\n  104 starved: on CPU or in a run queue; last seen on CPU, 4.0 s before the end\n" RUN
           "\n  100 MainThread: waits for a lock, 10.5 s\n" IDLE
           "\n  101 wor_ker: stopped, 30 ms; last seen on CPU, 40 ms before the end\n" RUN
           "\n  102 none: uninterruptible, 4.0 s\n      no stack was taken\n"
           "\n  103 ended: ended, and its process goes on\n      no stack was taken\n"
           "\n  105 asleep: asleep; last seen on CPU, 50 ms before the end\n" RUN);
    synthetic_deinit(&c.s);
}

/* Who awaits whom, by names and stacks; tasks that are done are not there; names cannot reach the terminal. */
TEST(tasks)
{
    struct scene c;

    setup(&c);
    at(&c, 9000 * MS, c.main, TASKS, c.inner, SAME, 7000 * MS, true);
    at(&c, 10000 * MS, c.main, TASKS, c.inner, SAME, 1000 * MS, false);
    last(&c)->continues = true;
    at(&c, END, c.main, TASKS, c.outer, OUTER, 10000 * MS, true);
    at(&c, END, c.main, TASKS, c.inner, INNER, 400 * MS, true);
    at(&c, END, c.main, TASKS, c.inner, INNER, 300 * MS, true); /* another of that name */
    at(&c, END, c.main, CPU, c.run, NO_LABELS, MS, false);
    assert_true(contains(&c.s, "threads", plain,
                         "\n  3 tasks that wait: who awaits others stands above them, each with its outermost call first\n"
                         "\n  out_[1mer: awaits a task, seen there for 10.0 s\n      outer (app.py:11)\n"
                         "    2 tasks: await a future, seen there for 400 ms\n      inner (2)\n        inner (app.py:21)\n"));
    synthetic_deinit(&c.s);
}

/* All of it as JSON, for each thread by itself; and what a script asks it. */
TEST(json)
{
    struct emit_options json = plain;
    struct scene c;
    json_error_t error;

    setup(&c);
    json.json = true;
    at(&c, END - 500 * MS, c.main, OFF_CPU, c.idle, READ, 1000 * MS, false);
    at(&c, END, c.worker, CPU, c.run, IN_TASK, MS, false);
    at(&c, END, c.main, TASKS, c.outer, OUTER, 10000 * MS, true);
    at(&c, END, c.main, TASKS, c.inner, INNER, 400 * MS, true);
    char *text = emit(&c.s, "threads", json);
    json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, &error), *threads, *tasks;
    int pid, tid, ago, own, depth;
    const char *does, *stack, *task, *name;
    assert_non_null(all);
    assert_int_equal(json_unpack(all, "{s:[{s:i,s:o,s:o}]}", "processes", "pid", &pid, "threads", &threads, "tasks", &tasks), 0);
    assert_int_equal(pid, 100);
    assert_int_equal(json_unpack(json_array_get(threads, 1), "{s:i,s:s,s:s}", "tid", &tid, "task", &task, "state", &does), 0);
    assert_int_equal(tid, 101);
    assert_string_equal(task, "now");
    assert_string_equal(does, "on CPU");
    assert_int_equal(json_unpack(json_array_get(threads, 0), "{s:s,s:s,s:i}", "state", &does, "stack_state", &stack, "seen_ns_ago", &ago), 0);
    assert_string_equal(does, "ran");
    assert_string_equal(stack, "blocked");
    assert_int_equal(ago, 500 * MS);
    name = json_string_value(json_object_get(json_array_get(json_object_get(json_array_get(threads, 0), "frames"), 0), "name"));
    assert_string_equal(name, "<module> (app.py:30)");
    json_t *inner = json_array_get(tasks, 1);
    depth = (int)json_array_size(json_object_get(inner, "frames"));
    assert_int_equal(json_unpack(inner, "{s:s,s:i}", "task", &name, "own_frames", &own), 0);
    assert_string_equal(name, "inner");
    assert_int_equal(own, 1);
    assert_int_equal(depth, 2);
    json_decref(all);
    free(text);
    synthetic_deinit(&c.s);
}

/* A service makes tasks for as long as it runs: those that are done are forgotten. */
TEST(many_tasks)
{
    struct limits limits = {.memory_max = 4 << 20, .work_max = UINT64_MAX};
    struct emit_options limited = plain;
    struct scene c;

    setup(&c);
    limited.limits = &limits;
    at(&c, BEGIN + 1, c.main, CPU, c.run, NO_LABELS, MS, false);
    uint32_t stack = c.inner;
    for (uint32_t i = 0; i < 300000; i++) { /* each at a stack of its own, which makes it another one */
        stack = synthetic_stack(&c.s, EMIT_NO_STACK, 0);
        at(&c, BEGIN + i * 30000, c.main, TASKS, stack, INNER, MS, i % 1000 == 0);
    }
    at(&c, END, c.main, TASKS, c.inner, INNER, MS, true);
    assert_true(contains(&c.s, "threads", limited, "\n  301 tasks that wait"));
    assert_true(limits.memory_used < limits.memory_max);
    synthetic_deinit(&c.s);
}

TEST(nothing)
{
    struct emit_options all = plain;
    struct synthetic s = {0};
    void *emitter_state = NULL;

    expect(&s, "threads", plain, "0 samples\n");
    all.merge = EMIT_MERGE_ALL;
    struct error *err = emitter_find("threads")->begin(&s.model, &all, stdout, &emitter_state);
    assert_non_null(err);
    assert_string_equal(error_text(err), "threads shows each process: --merge takes process or thread with it");
    error_destroy(err);
    synthetic_deinit(&s);
}
