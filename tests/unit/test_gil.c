/* SPDX-License-Identifier: Apache-2.0 */
/* The report on the GIL, as text and as JSON. */
#include "tests/unit/emit_fixture.h"

enum { CLOCK, OFF_CPU, BLAME };
static const uint64_t ms = 1000000;

static const struct emit_label_set label_sets[] = {
    {0},
    {.wait = EMIT_WAIT_GIL, .system_call = "futex"},
    {.wait = EMIT_WAIT_BLOCKED, .system_call = "clock_nanosleep"},
    {.wait = EMIT_WAIT_PREEMPTED},
    {.wait = EMIT_WAIT_LOCK, .system_call = "futex"},
    {.wait = EMIT_WAIT_STOP_THE_WORLD, .system_call = "futex"},
    {.interpreter = "1"},
};
enum { NO_LABEL, GIL, SLEEP, PREEMPTED, LOCK, WORLD, SUBINTERPRETER };

static const struct emit_capture capture = {.name = "t.bin", .hostname = "", .kernel_release = "", .machine = "", .cpu_model = "",
                                            .recorder = "", .duration_ns = UINT64_C(10000000000)};

static void put(struct synthetic *s, uint32_t thread, uint32_t event, uint32_t stack, uint32_t label_set, enum emit_gil gil, uint64_t value_ms)
{
    synthetic_sample(s, (struct emit_sample){.value = value_ms * ms, .thread = thread, .event = event, .stack = stack,
                                             .label_set = label_set, .gil = gil});
}

static void setup(struct synthetic *s, bool waits)
{
    s->model.label_sets = label_sets;
    s->model.label_set_count = sizeof label_sets / sizeof *label_sets;
    s->model.captures = &capture;
    s->model.capture_count = 1;
    synthetic_event(s, "cpu-clock", "ns", true);
    if (!waits)
        return;
    s->events.data[synthetic_event(s, "off-cpu", "ns", true)].kind = EVENT_OFF_CPU;
    uint32_t blame = synthetic_event(s, "gil-blame", "ns", true);
    s->events.data[blame].kind = EVENT_BLAME;
}

/* The stacks of a thread: a function of the file, and inward of it native ones. */
static uint32_t stack_of(struct synthetic *s, const char *function, const char *native, const char *innermost)
{
    uint32_t run = synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "Thread.run", "/usr/lib/python3.12/threading.py", 1012, 0, 999));
    uint32_t work = synthetic_stack(s, run, synthetic_python(s, "work", "/srv/app.py", 7, 0, 5));
    uint32_t stack = synthetic_stack(s, work, synthetic_python(s, function, "/srv/app.py", 12, 0, 10));

    if (native)
        stack = synthetic_stack(s, stack, synthetic_native(s, native, "/usr/lib/libc.so.6", 0x1000, 0));
    return innermost ? synthetic_stack(s, stack, synthetic_native(s, innermost, "/usr/lib/libc.so.6", 0x2000, 0)) : stack;
}

/* A thread that sleeps with the GIL, one that computes, and two that wait for them. */
static void setup_hog(struct synthetic *s)
{
    setup(s, true);
    uint32_t process = synthetic_process(s, 100, "app.py"), main_thread = synthetic_thread(s, process, 100, "MainThread");
    uint32_t hog = synthetic_thread(s, process, 101, "hog"), victim = synthetic_thread(s, process, 102, "victim");
    uint32_t sleeps = stack_of(s, "hog", "usleep", "clock_nanosleep"), computes = stack_of(s, "compute", NULL, NULL);
    uint32_t waits = stack_of(s, "victim", "take_gil", NULL);
    for (int i = 0; i < 100; i++) {
        put(s, main_thread, CLOCK, computes, NO_LABEL, EMIT_GIL_HELD, 10);
        put(s, main_thread, BLAME, computes, NO_LABEL, EMIT_GIL_HELD, 20);
        put(s, victim, CLOCK, waits, NO_LABEL, EMIT_GIL_NOT_HELD, 10);
    }
    put(s, main_thread, OFF_CPU, computes, PREEMPTED, EMIT_GIL_HELD, 100);
    put(s, hog, OFF_CPU, sleeps, SLEEP, EMIT_GIL_HELD, 4000);
    put(s, hog, BLAME, sleeps, SLEEP, EMIT_GIL_HELD, 7500);
    put(s, hog, OFF_CPU, sleeps, SLEEP, EMIT_GIL_NOT_HELD, 300);
    put(s, victim, OFF_CPU, waits, GIL, EMIT_GIL_NOT_HELD, 8000);
    put(s, main_thread, OFF_CPU, computes, GIL, EMIT_GIL_NOT_HELD, 1500);
}

TEST(golden)
{
    struct synthetic s = {0};
    struct emit_exact_time exact[] = {{.thread = 2, .wait = EMIT_WAIT_GIL, .ns = 8100 * ms, .count = 5000},
                                      {.thread = 2, .wait = EMIT_WAIT_LOCK, .ns = 77 * ms, .count = 1},
                                      {.thread = 0, .wait = EMIT_WAIT_GIL, .ns = 1600 * ms, .count = 1234}};

    setup_hog(&s);
    s.model.exact_times = exact;
    s.model.exact_time_count = 3;
    expect(&s, "gil", plain,
           "app.py 100, recorded for 10.00 s\n"
           "  held         5.10 s \xc2\xb1 0.10 s (51.0 % of the time) by 2 threads: 1.00 s running, 4.10 s off the CPU\n"
           "  waited for   9.70 s by 2 threads, 6,234 times, exactly; 9.50 s in samples\n"
           "  blamed       9.50 s \xc2\xb1 0.20 s on threads that held it: so long others waited for it, until they ran\n"
           "\n"
           "  made others wait           ran with it  off CPU with it  waited for it  thread\n"
           "  78.9%     7.50 s ########            -           4.00 s              -  hog 101\n"
           "  21.1%     2.00 s ##             1.00 s         100.0 ms         1.60 s  MainThread 100\n"
           "   0.0%     0.00 s                     -                -         8.10 s  victim 102\n"
           "\n"
           "Who held it while others waited, by the time that these lost\n"
           "  78.9%     7.50 s ########  hog (app.py:10)\n"
           "                             blocked in clock_nanosleep; in usleep > clock_nanosleep\n"
           "                             called by work (app.py:5)\n"
           "  21.1%     2.00 s ##        compute (app.py:10)\n"
           "                             running\n"
           "                             called by work (app.py:5)\n"
           "\n"
           "Calls that blocked and did not release it, by their time off the CPU\n"
           " 100.0%     4.00 s ########  hog (app.py:10)\n"
           "                             blocked in clock_nanosleep; in usleep > clock_nanosleep\n"
           "                             others waited for 7.50 s meanwhile\n"
           "                             called by work (app.py:5)\n"
           "\n"
           "Who waited for it\n"
           "  84.2%     8.00 s ########  victim (app.py:10)\n"
           "                             called by work (app.py:5)\n"
           "  15.8%     1.50 s ##        compute (app.py:10)\n"
           "                             called by work (app.py:5)\n");
    synthetic_deinit(&s);
}

/* Without waits: who ran with it, and what to record for the rest. */
TEST(clock_alone)
{
    struct synthetic s = {0};

    setup(&s, false);
    uint32_t process = synthetic_process(&s, 100, "app.py"), thread = synthetic_thread(&s, process, 100, "MainThread");
    for (int i = 0; i < 4; i++)
        put(&s, thread, CLOCK, stack_of(&s, "compute", "memcpy", NULL), i == 3 ? SUBINTERPRETER : NO_LABEL, EMIT_GIL_HELD, 100);
    put(&s, thread, CLOCK, stack_of(&s, "inflate", NULL, NULL), NO_LABEL, EMIT_GIL_NOT_HELD, 100);
    put(&s, thread, CLOCK, EMIT_NO_STACK, NO_LABEL, EMIT_GIL_UNKNOWN, 100);
    expect(&s, "gil", plain,
           "app.py 100, recorded for 10.00 s\n"
           "  held         400.0 ms \xc2\xb1 200.0 ms by 1 thread, running, in 4 of 5 samples\n"
           "  waited for   not in this trace: pycap record --wall records who waits for it\n"
           "\n"
           "  ran with it                thread\n"
           "  75.0%   300.0 ms ########  MainThread 100\n"
           "  25.0%   100.0 ms ###       MainThread 100, interpreter 1\n"
           "\n"
           "Who ran with it\n"
           " 100.0%   400.0 ms ########  compute (app.py:10)\n"
           "                             in memcpy\n"
           "                             called by work (app.py:5)\n");
    synthetic_deinit(&s);
}

/* A process that has a GIL beside one that has none; and a third that says nothing. */
TEST(free_threaded)
{
    struct synthetic s = {0};
    struct emit_options all = plain;

    setup(&s, true);
    uint32_t with = synthetic_thread(&s, synthetic_process(&s, 100, "with.py"), 100, "MainThread");
    uint32_t process = synthetic_process(&s, 200, "without.py"), without = synthetic_thread(&s, process, 200, "MainThread");
    uint32_t other = synthetic_thread(&s, synthetic_process(&s, 300, "sh"), 300, "sh");
    s.processes.data[process].free_threaded = true;
    put(&s, with, CLOCK, stack_of(&s, "compute", NULL, NULL), NO_LABEL, EMIT_GIL_HELD, 100);
    put(&s, with, OFF_CPU, stack_of(&s, "lock", NULL, NULL), LOCK, EMIT_GIL_NOT_HELD, 5000); /* it has a GIL: this is no matter of it */
    put(&s, without, CLOCK, stack_of(&s, "compute", NULL, NULL), NO_LABEL, EMIT_GIL_UNKNOWN, 100);
    put(&s, without, OFF_CPU, stack_of(&s, "append", "_PyMutex_Lock", NULL), LOCK, EMIT_GIL_UNKNOWN, 300);
    put(&s, without, OFF_CPU, stack_of(&s, "allocate", NULL, NULL), WORLD, EMIT_GIL_UNKNOWN, 100);
    put(&s, without, OFF_CPU, stack_of(&s, "sleep", NULL, NULL), SLEEP, EMIT_GIL_UNKNOWN, 900);
    put(&s, other, CLOCK, EMIT_NO_STACK, NO_LABEL, EMIT_GIL_UNKNOWN, 100);
    expect(&s, "gil", plain,
           "with.py 100, recorded for 10.00 s\n"
           "  held         100.0 ms \xc2\xb1 100.0 ms (1.0 % of the time) by 1 thread: 100.0 ms running, 0.0 ms off the CPU\n"
           "  waited for   by no thread\n"
           "\n"
           "  made others wait           ran with it  off CPU with it  waited for it  thread\n"
           "   0.0%     0.0 ms              100.0 ms                -              -  MainThread 100\n"
           "\n"
           "without.py 200, recorded for 10.00 s\n"
           "  GIL          free-threaded Python has none; waits for locks, and for the world to stop or go on: 400.0 ms in samples\n"
           "\n"
           "Who waited for locks, or for the world\n"
           "  75.0%   300.0 ms ########  append (app.py:10)\n"
           "                             waiting for a lock in futex\n"
           "                             called by work (app.py:5)\n"
           "  25.0%   100.0 ms ###       allocate (app.py:10)\n"
           "                             waiting for the world to stop or go on in futex\n"
           "                             called by work (app.py:5)\n");
    all.merge = EMIT_MERGE_ALL;
    expect(&s, "gil", all,
           "2 processes, recorded for 10.00 s\n"
           "  held         100.0 ms \xc2\xb1 100.0 ms by 1 thread: 100.0 ms running, 0.0 ms off the CPU\n"
           "  waited for   by no thread\n"
           "  GIL          free-threaded Python has none; waits for locks, and for the world to stop or go on: 400.0 ms in samples\n"
           "\n"
           "  made others wait           ran with it  off CPU with it  waited for it  thread\n"
           "   0.0%     0.0 ms              100.0 ms                -              -  with.py 100 \xc2\xb7 MainThread\n"
           "   0.0%     0.0 ms                     -                -              -  without.py 200 \xc2\xb7 MainThread\n"
           "\n"
           "Who waited for it, or for locks\n"
           "  75.0%   300.0 ms ########  append (app.py:10)\n"
           "                             waiting for a lock in futex\n"
           "                             called by work (app.py:5)\n"
           "  25.0%   100.0 ms ###       allocate (app.py:10)\n"
           "                             waiting for the world to stop or go on in futex\n"
           "                             called by work (app.py:5)\n");
    synthetic_deinit(&s);
}

static json_t *load_json(const struct synthetic *s, struct emit_options options)
{
    options.json = true;
    char *text = emit(s, "gil", options);
    json_t *root = json_loads(text, 0, NULL);

    assert_non_null(root);
    free(text);
    return root;
}

static uint64_t member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    assert_true(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

TEST(json)
{
    struct synthetic s = {0};
    struct emit_exact_time exact[] = {{.thread = 2, .wait = EMIT_WAIT_GIL, .ns = 8100 * ms, .count = 5000}};
    struct emit_part window = {.process = EMIT_PART_ALL, .thread = EMIT_PART_ALL, .window_begin_ns = 1, .window_end_ns = 2};
    struct emit_part victim = {.process = 0, .thread = 2};
    struct emit_options o = plain;

    setup_hog(&s);
    s.model.exact_times = exact;
    s.model.exact_time_count = 1;
    json_t *root = load_json(&s, plain), *process = json_array_get(json_object_get(root, "processes"), 0);
    assert_int_equal(member(process, "blamed_ns"), 9500 * ms);
    assert_int_equal(member(process, "blamed_error_ns"), 200 * ms);
    assert_int_equal(member(process, "running_ns"), 1000 * ms);
    assert_int_equal(member(process, "off_cpu_ns"), 4100 * ms);
    assert_int_equal(member(process, "waited_exact_ns"), 8100 * ms);
    assert_int_equal(member(process, "waited_exact_count"), 5000);
    const json_t *hog = json_array_get(json_object_get(process, "holders"), 0);
    assert_string_equal(json_string_value(json_object_get(hog, "function")), "hog (app.py:10)");
    assert_string_equal(json_string_value(json_object_get(hog, "state")), "blocked");
    assert_string_equal(json_string_value(json_object_get(hog, "system_call")), "clock_nanosleep");
    assert_string_equal(json_string_value(json_array_get(json_object_get(hog, "native"), 0)), "usleep");
    assert_int_equal(json_array_size(json_object_get(hog, "callers")), 2);
    assert_int_equal(json_array_size(json_object_get(process, "blocking_calls")), 1); /* the preempted one is none */
    assert_int_equal(member(json_array_get(json_object_get(process, "blocking_calls"), 0), "blamed_ns"), 7500 * ms);
    assert_int_equal(json_array_size(json_object_get(process, "waiters")), 2);
    json_decref(root);

    /* Exact times are those of whole threads. */
    o.part = &window;
    root = load_json(&s, o);
    assert_true(json_is_null(json_object_get(json_array_get(json_object_get(root, "processes"), 0), "waited_exact_ns")));
    json_decref(root);
    o.part = &victim;
    root = load_json(&s, o);
    assert_int_equal(member(json_array_get(json_object_get(root, "processes"), 0), "waited_exact_ns"), 8100 * ms);
    json_decref(root);
    synthetic_deinit(&s);
}

TEST(limits_of_rows)
{
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_hog(&s);
    o.min_share = 0.5;
    char *text = emit(&s, "gil", o);
    assert_non_null(strstr(text, "\nWho held it while"));
    assert_null(strstr(text, "  compute ("));
    free(text);
    o.min_share = 0;
    o.top_count = 1;
    assert_true(contains(&s, "gil", o, "\nand 2 more threads (--top 0 lists all)\n"));
    assert_true(contains(&s, "gil", o, "\nand 1 more row (--top 0 lists all)\n"));
    uint32_t other = synthetic_thread(&s, synthetic_process(&s, 200, "other.py"), 200, "x\033[31m");
    put(&s, other, CLOCK, EMIT_NO_STACK, NO_LABEL, EMIT_GIL_HELD, 10);
    assert_true(contains(&s, "gil", o, "\nand 1 other process (--top 0 lists all)\n"));
    o.top_count = 0;
    text = emit(&s, "gil", o);
    assert_null(strchr(text, '\033'));
    assert_non_null(strstr(text, "blocked in clock_nanosleep; in usleep > clock_nanosleep"));
    free(text);
    o.terminal.columns = 60;
    text = emit(&s, "gil", o);
    assert_null(strstr(text, "blocked in clock_nanosleep; in usleep > clock_nanosleep"));
    free(text);
    synthetic_deinit(&s);
}

/* The table of threads tells them apart; another would be of each. */
TEST(no_merge_by_thread)
{
    struct synthetic s = {0};
    struct emit_options o = plain;
    void *emitter_state = NULL;

    setup(&s, false);
    o.merge = EMIT_MERGE_THREAD;
    struct error *err = emitter_find("gil")->begin(&s.model, &o, stdout, &emitter_state);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_USAGE);
    error_destroy(err);
    synthetic_deinit(&s);
}

TEST(nothing)
{
    struct synthetic s = {0};

    setup(&s, false);
    expect(&s, "gil", plain,
           "no sample says whether its thread held a GIL: recorded without BPF, or no Python that has one was sampled\n");
    synthetic_deinit(&s);
}
