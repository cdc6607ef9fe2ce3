/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the hottest functions and lines, as text and as JSON. */
#include "formats/emit/top_states.h"
#include "tests/unit/emit_fixture.h"

/* ---- what is counted ---- */

/* A recursion counts once per sample, mixed with others or not. */
TEST(recursion)
{
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_one(&s);
    uint32_t f = synthetic_python(&s, "f", "x.py", 2, 0, 1), g = synthetic_python(&s, "g", "x.py", 9, 0, 8);
    uint32_t f3 = synthetic_python(&s, "f", "x.py", 3, 0, 1);
    uint32_t stack = synthetic_stack(&s, EMIT_NO_STACK, f);
    stack = synthetic_stack(&s, stack, g);
    stack = synthetic_stack(&s, stack, f3);
    sample(&s, 0, stack);
    sample(&s, 0, stack);
    sample(&s, 0, synthetic_stack(&s, stack, f3));
    assert_true(contains(&s, "top", plain,
                         " 100.0% 30.0 ms ########  100.0% 30.0 ms  f (x.py:1)\n"
                         "   0.0%  0.0 ms           100.0% 30.0 ms  g (x.py:8)\n"));
    o.by = EMIT_BY_LINE;
    assert_true(contains(&s, "top", o,
                         " 100.0% 30.0 ms ########  100.0% 30.0 ms  f (x.py:3)\n"
                         "   0.0%  0.0 ms           100.0% 30.0 ms  f (x.py:2)\n"
                         "   0.0%  0.0 ms           100.0% 30.0 ms  g (x.py:9)\n"));
    synthetic_deinit(&s);
}

/* ---- the head ---- */

/* Processes of one name are one, the heaviest name first; those that do not fit the line are counted. */
TEST(programs)
{
    struct synthetic s = {0};
    char *names[40];

    synthetic_event(&s, "cpu-clock", "ns", true);
    uint32_t stack = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "x.py", 1, 0, 1));
    for (uint32_t i = 0; i < 3; i++)
        sample(&s, synthetic_thread(&s, synthetic_process(&s, 10 + i, i == 1 ? "sh" : "gunicorn"), 10 + i, ""), stack);
    assert_true(contains(&s, "top", plain, "\ngunicorn (2 processes), sh (pid 11)\n\n"));
    for (uint32_t i = 0; i < 40; i++) {
        assert_true(asprintf(&names[i], "program%u", i) > 0);
        sample(&s, synthetic_thread(&s, synthetic_process(&s, 100 + i, names[i]), 100 + i, ""), stack);
    }
    assert_true(contains(&s, "top", plain,
                         "\ngunicorn (2 processes), sh (pid 11) and 40 other processes\n\n"));
    for (uint32_t i = 0; i < 40; i++)
        free(names[i]);
    synthetic_deinit(&s);
}

/* A program stands before what it began; what a process ran before is not another process. */
TEST(programs_of_a_tree)
{
    struct synthetic s = {0};

    synthetic_event(&s, "cpu-clock", "ns", true);
    uint32_t stack = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "x.py", 1, 0, 1));
    static const char *const names[] = {"d (spawn)", "sh", "d", "d (spawn)", "cron"};
    static const uint32_t pids[] = {11, 10, 10, 12, 20}, parents[] = {10, 1, 1, 10, 1}, counts[] = {3, 1, 1, 3, 2};
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t process = synthetic_process(&s, pids[i], names[i]);
        s.processes.data[process].parent_pid = parents[i];
        uint32_t thread = synthetic_thread(&s, process, pids[i], "");
        for (uint32_t k = 0; k < counts[i]; k++)
            sample(&s, thread, stack);
    }
    s.processes.data[2].first_program = 1; /* sh, which executed d */
    assert_true(contains(&s, "top", plain, "\nd (pid 10), d (spawn) (2 processes), cron (pid 20)\n\n"));
    s.processes.data[2].parent_pid = 11; /* a circle, which only a forged trace has */
    assert_true(contains(&s, "top", plain, "d (pid 10)"));
    synthetic_deinit(&s);
}

/* What filters left, what the view hides, and how long it was recorded. */
TEST(totals)
{
    static const struct emit_capture captures[] = {{.name = "a", .duration_ns = 6000000000},
                                                   {.name = "b", .duration_ns = 4000000000}};
    static const struct emit_total totals[] = {{.all_samples = 20,
                                                .all_value = 200000000,
                                                .shown_samples = 5,
                                                .shown_value = 50000000,
                                                .interpreter_value = 20500000}};
    struct synthetic s = {0};

    setup_small(&s);
    s.model.captures = captures;
    s.model.capture_count = 2;
    s.model.totals = totals;
    s.model.filters = "--pid 100";
    assert_true(contains(&s, "top", plain,
                         "5 samples of cpu-clock: 50.0 ms of CPU time, recorded in 10.0 s\n"
                         "python3 (pid 100)\n"
                         "0.05 s of 0.20 s shown (--pid 100)\n"
                         "41.0 % of the time was in the interpreter, working for the functions shown\n"
                         "\n"));
    s.model.filters = "";
    char *text = emit(&s, "top", plain);
    assert_null(strstr(text, " of 0.20 s"));
    free(text);
    synthetic_deinit(&s);
}

/* ---- kept apart ---- */

TEST(merge)
{
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_small(&s);
    o.merge = EMIT_MERGE_THREAD;
    o.top_count = 1;
    expect(&s, "top", o,
           "5 samples of cpu-clock: 50.0 ms of CPU time\n"
           "python3 (pid 100)\n"
           "\n"
           "python3 100 \xc2\xb7 MainThread 101: 30.0 ms, 60.0 %\n"
           "   self    time            total    time  function\n"
           "  66.7% 20.0 ms ########   66.7% 20.0 ms  do_syscall_64_[k]\n"
           "and 3 more functions, with 33.3 % of the time (--top 0 lists all)\n"
           "\n"
           "and 1 other thread (--top 0 lists all)\n");
    o.merge = EMIT_MERGE_PROCESS;
    assert_true(contains(&s, "top", o, "\npython3 100: 50.0 ms, 100 %\n"));
    o.merge = EMIT_MERGE_DEFAULT;
    o.threads = true;
    assert_true(contains(&s, "top", o, "MainThread 101: 30.0 ms, 60.0 %\n"));
    synthetic_deinit(&s);
}

/* ---- on a terminal ---- */

TEST(terminal)
{
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_small(&s);
    o.terminal = (struct emit_terminal){.columns = 80, .colours = true, .blocks = true};
    assert_true(contains(&s, "top", o,
                         "function: \033[36mPython\033[0m, \033[33mnative\033[0m, \033[35mkernel\033[0m\n"
                         "  60.0% 30.0 ms\033[35m \xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88"
                         "\xe2\x96\x88\xe2\x96\x88\033[0m   60.0% 30.0 ms\033[35m  do_syscall_64_[k]\033[0m\n"
                         "  20.0% 10.0 ms\033[36m \xe2\x96\x88\xe2\x96\x88\xe2\x96\x8b     \033[0m   80.0% 40.0 ms"
                         "\033[36m  C.run (x.py:40)\033[0m\n"));
    o.terminal.colours = false;
    char *text = emit(&s, "top", o);
    assert_null(strchr(text, '\033'));
    free(text);
    synthetic_deinit(&s);
}

/* No line is longer than the terminal is wide; of a name its middle goes. Without a terminal names are whole. */
TEST(width)
{
    static const char name[] = "Application.<locals>.caf\xc3\xa9_caf\xc3\xa9_caf\xc3\xa9_caf\xc3\xa9_caf\xc3\xa9.r";
    struct synthetic s = {0};
    struct emit_options o = plain;
    char *save = NULL;

    setup_one(&s);
    sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, name, "/srv/app.py", 1, 0, 1234)));
    o.terminal.columns = 80;
    char *text = emit(&s, "top", o);
    assert_non_null(strstr(text, "  Application.<locals\xe2\x80\xa6" "f\xc3\xa9.r (app.py:1234)\n"));
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        size_t columns = 0;
        for (const char *c = line; *c; c++)
            columns += (*c & 0xc0) != 0x80;
        assert_true(columns <= 80);
    }
    free(text);
    assert_true(contains(&s, "top", plain, ".r (app.py:1234)\n") && contains(&s, "top", plain, name));
    /* Narrow terminals keep a piece of the name. */
    o.terminal.columns = 20;
    assert_true(contains(&s, "top", o, "  Applicat\xe2\x80\xa6y:1234)\n"));
    synthetic_deinit(&s);
}

/* ---- JSON ---- */

/* The unit is in the name, and whose table it is. */
TEST(json)
{
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_small(&s);
    o.json = true;
    s.events.data[0] = (struct emit_event){.name = "page-faults", .unit = "bytes", .kind = EVENT_BYTES};
    o.merge = EMIT_MERGE_THREAD;
    assert_true(contains(&s, "top", o, "\"weight_bytes\":50000000"));
    assert_true(contains(&s, "top", o, "{\"pid\":100,\"process\":\"python3\",\"title\":\"\",\"tid\":102,\"thread\":\"worker\","));
    s.events.data[0].kind = EVENT_AMOUNT;
    assert_true(contains(&s, "top", o, "\"unit\":\"count\"") && contains(&s, "top", o, "\"self_weight_count\":20000000"));
    synthetic_deinit(&s);
}

TEST(json_without_samples)
{
    struct synthetic s = {0};
    struct emit_options o = plain;

    o.json = true;
    char *text = emit(&s, "top", o);
    json_t *json = json_loads(text, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(json, "events")), 0);
    assert_true(json_is_array(json_object_get(json, "events")));
    json_decref(json);
    free(text);
    synthetic_deinit(&s);
}

/* A wait is the time of the innermost function of Python, or else of native code; rows say what was waited for. */
TEST(waits)
{
    struct synthetic s = {0};

    synthetic_thread(&s, synthetic_process(&s, 100, "python3"), 101, "MainThread");
    synthetic_event(&s, "wall", "ns", true);
    s.events.data[0].kind = EVENT_WALL_TIME;
    uint32_t lock = synthetic_mark(&s, "[wait: lock]"), disk = synthetic_mark(&s, "[wait: uninterruptible]");
    s.frames.data[lock].wait = "lock";
    s.frames.data[disk].wait = "uninterruptible";
    uint32_t schedule = synthetic_kernel(&s, "schedule", "[kernel.kallsyms]", 0xffffffff81000000, 1);
    uint32_t run = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "run", "/srv/x.py", 2, 1, 1));
    uint32_t native = synthetic_native(&s, "futex_wait", "/usr/lib/libc.so.6", 0x7f0000001000, 0x12);
    uint32_t in_run = synthetic_stack(&s, synthetic_stack(&s, run, native), schedule);
    uint32_t alone = synthetic_stack(&s, synthetic_stack(&s, EMIT_NO_STACK, native), schedule);
    sample(&s, 0, run);
    sample(&s, 0, synthetic_stack(&s, in_run, lock));
    sample(&s, 0, synthetic_stack(&s, in_run, disk));
    sample(&s, 0, synthetic_stack(&s, in_run, lock));
    sample(&s, 0, synthetic_stack(&s, alone, lock));
    sample(&s, 0, synthetic_stack(&s, synthetic_stack(&s, EMIT_NO_STACK, schedule), lock));
    sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, lock));
    expect(&s, "top", plain,
           "7 samples of wall: 70.0 ms of wall time\n"
           "lock 50.0 ms, on CPU 10.0 ms, uninterruptible 10.0 ms\n"
           "python3 (pid 100)\n"
           "\n"
           "   self    time            total    time  state                 function\n"
           "  57.1% 40.0 ms ########   57.1% 40.0 ms  lock 50%, on CPU 25%  run (x.py:1)\n"
           "  14.3% 10.0 ms ##         71.4% 50.0 ms  lock                  schedule_[k]\n"
           "  14.3% 10.0 ms ##         57.1% 40.0 ms  lock                  futex_wait\n"
           "  14.3% 10.0 ms ##         14.3% 10.0 ms  lock                  [wait: lock]\n");
    char *text = emit(&s, "top", (struct emit_options){.json = true});
    json_t *json = json_loads(text, 0, NULL), *event = json_array_get(json_object_get(json, "events"), 0);
    json_t *row = json_array_get(json_object_get(json_array_get(json_object_get(event, "tables"), 0), "rows"), 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(event, "states_ns"), "lock")), 50000000);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(row, "self_states_ns"), "uninterruptible")), 10000000);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(row, "total_states_ns"), "on CPU")), 10000000);
    json_decref(json);
    free(text);
    synthetic_deinit(&s);
}

/*
 * Waits at one call site, of which three had a stack: the sums of the site are exact, and what callers beyond the fourth
 * frame have of the others has an error. By hand: D = 60, 30 and O = 90, l = 10, 10, 20. w^2 is 7.5, the larger of (90 / 40)^2
 * and (60^2 + 30^2) / 600. A has 20 + 60 of 130 ms, B the rest, and l^2 adds up to 200 and 400:
 * sqrt(7.5 * ((5 / 13)^2 * 200 + (8 / 13)^2 * 400) + 8 / 13 * 5 / 13 * 4500 / 2) = 43.5 ms.
 */
TEST(errors)
{
    struct synthetic s = {0};
    struct emit_options o = plain;
    static const struct {
        int caller;
        uint64_t ms;
        bool owed;
    } rows[] = {{0, 10, false}, {0, 60, true}, {1, 20, false}, {1, 30, true}, {0, 10, false}};
    uint32_t waits[2];

    synthetic_thread(&s, synthetic_process(&s, 100, "python3"), 101, "MainThread");
    synthetic_event(&s, "off-cpu", "ns", true);
    s.events.data[0].kind = EVENT_OFF_CPU;
    s.model.label_sets = &(const struct emit_label_set){.wait = EMIT_WAIT_LOCK};
    s.model.label_set_count = 1;
    uint32_t lock = synthetic_mark(&s, "[wait: lock]"), wait = synthetic_python(&s, "wait", "/srv/x.py", 2, 1, 1);
    s.frames.data[lock].wait = "lock";
    for (int i = 0; i < 2; i++) {
        uint32_t caller = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, i ? "b" : "a", "/srv/x.py", 9, 1, 5));
        for (int k = 0; k < 4; k++)
            caller = synthetic_stack(&s, caller, wait);
        waits[i] = synthetic_stack(&s, caller, lock);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        synthetic_sample(&s, (struct emit_sample){.value = rows[i].ms * 1000000, .stack = waits[rows[i].caller],
                                                  .owed = rows[i].owed, .continues = rows[i].owed});
    expect(&s, "top", plain,
           "5 samples of off-cpu: 130 ms of waiting\n"
           "lock 130 ms\n"
           "python3 (pid 100)\n"
           "\n"
           "   self     time            total     time         \xc2\xb1  state  function\n"
           " 100.0% 130.0 ms ########  100.0% 130.0 ms            lock   wait (x.py:1)\n"
           "   0.0%   0.0 ms            61.5%  80.0 ms  \xc2\xb1" "43.5 ms  lock   a (x.py:5)\n"
           "   0.0%   0.0 ms            38.5%  50.0 ms  \xc2\xb1" "43.5 ms  lock   b (x.py:5)\n");
    o.json = true;
    assert_true(contains(&s, "top", o, "\"total_standard_error_ns\":43480"));
    o = plain;
    o.waits_chosen = true; /* what was left out of the place is not known */
    char *text = emit(&s, "top", o);
    assert_null(strstr(text, "\xc2\xb1"));
    free(text);
    synthetic_deinit(&s);
}

/* However many kinds a trace names, the further ones are one. */
TEST(states_have_a_limit)
{
    struct synthetic s = {0};
    char names[2 * TOP_STATES][16];

    setup_one(&s);
    for (int i = 0; i < 2 * TOP_STATES; i++) {
        snprintf(names[i], sizeof names[i], "kind %d", i);
        uint32_t mark = synthetic_mark(&s, "[wait]");
        s.frames.data[mark].wait = names[i];
        sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, mark));
    }
    assert_true(contains(&s, "top", plain, "other 130 ms, kind 0 10.0 ms, "));
    synthetic_deinit(&s);
}
