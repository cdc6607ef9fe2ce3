/* SPDX-License-Identifier: Apache-2.0 */
/* The output formats: golden texts, and one test for each way in which a consumer is known to lose data. */
#include <sys/resource.h>

#include "formats/emit/names.h"
#include "formats/emit/spool.h"
#include "tests/unit/emit_fixture.h"

/* A thread of one sample with one frame. */
static void setup_frame(struct synthetic *s, uint32_t frame)
{
    setup_one(s);
    sample(s, 0, synthetic_stack(s, EMIT_NO_STACK, frame));
}

/* ---- golden texts ---- */

TEST(folded_golden)
{
    struct synthetic s = {0};

    setup_small(&s);
    expect(&s, "folded", plain,
           "python3-100;<module> (x.py:1);C.run (x.py:42);memcpy;do_syscall_64_[k] 3\n"
           "python3-100;<module> (x.py:1);C.run (x.py:43) 1\n"
           "python3-100;[torn] 1\n");
    struct emit_options threads = plain;
    threads.threads = true;
    expect(&s, "folded", threads,
           "python3-100;MainThread-101;<module> (x.py:1);C.run (x.py:42);memcpy;do_syscall_64_[k] 2\n"
           "python3-100;MainThread-101;<module> (x.py:1);C.run (x.py:43) 1\n"
           "python3-100;worker-102;<module> (x.py:1);C.run (x.py:42);memcpy;do_syscall_64_[k] 1\n"
           "python3-100;worker-102;[torn] 1\n");
    synthetic_deinit(&s);
}

TEST(speedscope_golden)
{
    struct synthetic s = {0};

    setup_small(&s);
    expect(&s, "speedscope", by_thread,
           "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":\"test\","
           "\"exporter\":\"pysym test\",\"activeProfileIndex\":0,\n"
           "\"shared\":{\"frames\":[\n"
           "{\"name\":\"<module> (x.py:1)\",\"file\":\"/srv/x.py\",\"line\":1},\n"
           "{\"name\":\"C.run (x.py:43)\",\"file\":\"/srv/x.py\",\"line\":43},\n"
           "{\"name\":\"C.run (x.py:42)\",\"file\":\"/srv/x.py\",\"line\":42},\n"
           "{\"name\":\"memcpy\",\"file\":\"/usr/lib/libc.so.6\"},\n"
           "{\"name\":\"do_syscall_64_[k]\",\"file\":\"[kernel.kallsyms]\"},\n"
           "{\"name\":\"[torn]\"}\n"
           "]},\n"
           "\"profiles\":[\n"
           "{\"type\":\"sampled\",\"name\":\"python3-100 MainThread 101\",\"unit\":\"nanoseconds\","
           "\"startValue\":0,\"endValue\":30000000,\n"
           "\"samples\":[[0,2,3,4],[0,1]],\n"
           "\"weights\":[20000000,10000000]},\n"
           "{\"type\":\"sampled\",\"name\":\"python3-100 worker 102\",\"unit\":\"nanoseconds\","
           "\"startValue\":0,\"endValue\":20000000,\n"
           "\"samples\":[[0,2,3,4],[5]],\n"
           "\"weights\":[10000000,10000000]}\n"
           "]}\n");
    synthetic_deinit(&s);
}

TEST(perf_script_golden)
{
    struct synthetic s = {0};

    setup_small(&s);
    s.samples.data[1] = s.samples.data[4];
    s.samples.count = 2;
    expect(&s, "perf-script", plain,
           "python3      100/101     [003]    10.000001:          1 cpu-clock: \n"
           "\tffffffff81000000 do_syscall_64+0x5c ([kernel.kallsyms])\n"
           "\t    7f0000001000 memcpy+0x12 (/usr/lib/libc.so.6)\n"
           "\t               0 py::C.run:/srv/x.py:42 (/usr/bin/python3.12)\n"
           "\t               0 py::<module>:/srv/x.py:1 (/usr/bin/python3.12)\n"
           "\n"
           "python3      100/102     [003]    10.040001:          1 cpu-clock: \n"
           "\t               0 [torn] ([unknown])\n"
           "\n");
    synthetic_deinit(&s);
}

/* ---- options ---- */

TEST(options)
{
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_small(&s);
    o.columns = true;
    assert_true(contains(&s, "folded", o, "C.run (x.py:42:9);"));
    assert_true(contains(&s, "speedscope", o, "\"line\":42,\"col\":9}"));
    assert_true(contains(&s, "perf-script", o, "py::C.run:/srv/x.py:42:9 ("));
    o = plain;
    o.full_paths = true;
    assert_true(contains(&s, "folded", o, "C.run (/srv/x.py:42);"));
    synthetic_deinit(&s);
}

/* Frames without lines, as --nolineno makes them, and with the line of their function, as --function does. */
TEST(frames_without_lines_of_their_own)
{
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_one(&s);
    uint32_t lines[] = {0, 9, 20};
    for (int i = 0; i < 3; i++)
        sample(&s, 0,
               synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "<lambda>", "/x.py", lines[i], 0, lines[i])));
    o.columns = true;
    expect(&s, "folded", o,
           "python3-100;<lambda> (x.py) 1\npython3-100;<lambda> (x.py:20) 1\npython3-100;<lambda> (x.py:9) 1\n");
    assert_true(contains(&s, "speedscope", o, "{\"name\":\"<lambda> (x.py)\",\"file\":\"/x.py\"}"));
    assert_true(contains(&s, "perf-script", o, "py::<lambda>:/x.py ("));
    assert_true(contains(&s, "perf-script", o, "py::<lambda>:/x.py:9 ("));
    synthetic_deinit(&s);
}

TEST(short_paths)
{
    static const char *const cases[][2] = {
        {"/usr/lib/python3.12/json/__init__.py", "json/__init__.py"},
        {"/venv/lib/python3.13t/site-packages/django/db/models.py", "django/db/models.py"},
        {"/usr/lib/python3/dist-packages/yaml/loader.py", "yaml/loader.py"},
        {"/usr/lib/python312.zip/encodings/aliases.py", "encodings/aliases.py"},
        {"/opt/pypy3.10/lib_pypy/x.py", "lib_pypy/x.py"},
        {"/srv/shop/main.py", "main.py"},
        {"/srv/shop/api/__main__.py", "api/__main__.py"},
        {"relative.py", "relative.py"},
        {"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"},
        {"<made/up>", "<made/up>"},
        {"/", "/"},
        /* One name for two files, which grow until they differ; and a third that the longer one would meet. */
        {"/srv/a/x/views.py", "a/x/views.py"},
        {"/srv/b/x/views.py", "b/x/views.py"},
        {"/opt/python3.9/asyncio/events.py", "python3.9/asyncio/events.py"},
        {"/opt/python3.8/asyncio/events.py", "python3.8/asyncio/events.py"},
        {"/z/q.py", "/z/q.py"},
        {"z/q.py", "z/q.py"},
    };
    struct synthetic s = {0};

    setup_one(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", cases[i][0], 1, 1, 1)));
    struct emit_options own = plain;
    own.own_paths = true;
    assert_true(contains(&s, "folded", own, "f (/srv/shop/main.py:1)") && contains(&s, "folded", own, "f (<made/up>:1)"));
    assert_true(contains(&s, "folded", own, ";f (django/db/models.py:1)") && contains(&s, "folded", own, ";f (json/__init__.py:1)"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[200];
        snprintf(line, sizeof line, "python3-100;f (%s:1) 1\n", cases[i][1]);
        assert_true(contains(&s, "folded", plain, line));
    }
    synthetic_deinit(&s);
}

/* ---- folded: traps ---- */

/* A last frame that ends in a space and a number would be read as a second column. */
TEST(folded_number_at_the_end)
{
    static const char *const names[][2] = {{"handler 12", "handler_12"},
                                           {"v 1.5", "v_1.5"},
                                           {"a 1 2", "a 1_2"},
                                           {"x 7 ", "x_7"},
                                           {"12", "12"},
                                           {"a12", "a12"}};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct synthetic s = {0};
        char line[64], frame[64];
        snprintf(line, sizeof line, "python3-100;%s 1\n", names[i][1]);
        snprintf(frame, sizeof frame, " %s+0x1 (/x)\n", names[i][1]);
        setup_frame(&s, synthetic_native(&s, names[i][0], "/x", 1, 1));
        expect(&s, "folded", plain, line);
        /* stackcollapse-perf.pl would hand it on. */
        assert_true(contains(&s, "perf-script", plain, frame));
        synthetic_deinit(&s);
    }
}

TEST(folded_separators_and_controls)
{
    struct synthetic s = {0};

    setup_frame(&s, synthetic_python(&s, "a;b\nc\r\x1b[1m\xc2\x85\xe2\x80\xa8", "x;y.py", 1, 0, 0));
    s.processes.data[0].comm = s.processes.data[0].name = "my;app 1\n";
    expect(&s, "folded", plain, "my:app_1_-100;a:b_c__[1m__ (x:y.py:1) 1\n");
    synthetic_deinit(&s);
}

/* Text that turns the direction or is invisible is shown as such; what a page would obey does not stand in JSON. */
TEST(misleading_names)
{
    struct synthetic s = {0};

    setup_frame(&s, synthetic_python(&s, "a\xe2\x80\xae" "b\xe2\x80\x8b</script><!-- c", "x.py", 1, 0, 0));
    assert_true(contains(&s, "folded", plain, ";a_b_</script><!-- c (x.py:1) 1\n"));
    assert_true(contains(&s, "perf-script", plain, "py::a_b_</script><!-- c:"));
    assert_true(contains(&s, "top", plain, "a_b_</script><!-- c"));
    assert_true(contains(&s, "speedscope", plain, "\"a_b_<\\/script>\\u003c!-- c (x.py:1)\""));
    synthetic_deinit(&s);
}

/* Firefox makes that many samples of a count. */
TEST(folded_counts_samples_not_time)
{
    struct synthetic s = {0};

    setup_frame(&s, synthetic_python(&s, "f", "x.py", 1, 0, 0));
    s.samples.data[0].value = 123456789;
    expect(&s, "folded", plain, "python3-100;f (x.py:1) 1\n");
    synthetic_deinit(&s);
}

static void weighed(struct synthetic *s, uint32_t event, uint32_t stack, uint64_t value)
{
    sample(s, 0, stack);
    s->samples.data[s->samples.count - 1].event = event;
    s->samples.data[s->samples.count - 1].value = value;
}

static uint32_t named(struct synthetic *s, const char *name)
{
    return synthetic_stack(s, EMIT_NO_STACK, synthetic_native(s, name, "/x", 1, 1));
}

/* What the emitter has to say beside its output, which is dropped; NULL: nothing. */
static const char *remark(const struct synthetic *s, const char *format, struct emit_options options)
{
    const struct emitter *emitter = emitter_find(format);
    FILE *out = fopen("/dev/null", "w");
    void *state;

    assert_non_null(out);
    assert_null(emitter->begin(&s->model, &options, out, &state));
    for (size_t i = 0; i < s->samples.count; i++)
        assert_null(emitter->sample(state, &s->samples.data[i]));
    assert_null(emitter->end(state));
    const char *text = emitter->remark(state);
    emitter->destroy(state);
    fclose(out);
    return text;
}

/* One sample of three intervals outweighs two of one: in order, in shares, and in every format that has numbers. */
TEST(unequal_weights)
{
    struct synthetic s = {0};
    struct emit_options told = plain;

    setup_one(&s);
    uint32_t often = named(&s, "often"), seldom = named(&s, "seldom");
    weighed(&s, 0, often, 10000000);
    weighed(&s, 0, often, 10000000);
    assert_null(remark(&s, "folded", plain));
    assert_null(remark(&s, "perf-script", plain));
    weighed(&s, 0, seldom, 30000400);
    expect(&s, "folded", plain, "python3-100;often 20000\npython3-100;seldom 30000\n");
    assert_non_null(strstr(remark(&s, "folded", plain), "counts are microseconds"));
    expect(&s, "top", plain,
           "3 samples of cpu-clock: 50.0 ms of CPU time\n"
           "python3 (pid 100)\n"
           "\n"
           "   self    time            total    time  function\n"
           "  60.0% 30.0 ms ########   60.0% 30.0 ms  seldom\n"
           "  40.0% 20.0 ms #####      40.0% 20.0 ms  often\n");
    /* Streamed: right when it was known before, and said when it was not. */
    assert_true(contains(&s, "perf-script", plain, "10.020001:          1 cpu-clock: \n"));
    assert_non_null(strstr(remark(&s, "perf-script", plain), "every period is 1"));
    told.weights_differ = true;
    assert_true(contains(&s, "perf-script", told, "10.000001:   10000000 cpu-clock: \n"));
    assert_true(contains(&s, "perf-script", told, "10.020001:   30000400 cpu-clock: \n"));
    assert_non_null(strstr(remark(&s, "perf-script", told), "periods are weights"));
    synthetic_deinit(&s);
}

/* Microseconds: no stack with a weight vanishes, one without does, and the sum stays. */
TEST(folded_rounding)
{
    struct synthetic s = {0};
    unsigned long sum = 0, weight_ns = 0;
    char *save = NULL;

    setup_one(&s);
    weighed(&s, 0, named(&s, "nothing"), 0);
    weighed(&s, 0, named(&s, "tiny"), 1);
    weighed(&s, 0, named(&s, "tiny too"), 1);
    weighed(&s, 0, named(&s, "pays"), 9001998);
    expect(&s, "folded", plain, "python3-100;pays 9000\npython3-100;tiny 1\npython3-100;tiny too 1\n");
    synthetic_deinit(&s);

    s = (struct synthetic){0};
    setup_one(&s);
    for (unsigned i = 0; i < 1000; i++) {
        char *name = NULL;
        assert_true(asprintf(&name, "f%u", i) > 0);
        weighed(&s, 0, named(&s, name), 1400 + i % 3);
        weight_ns += 1400 + i % 3;
    }
    char *text = emit(&s, "folded", plain);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        unsigned long number = strtoul(strrchr(line, ' '), NULL, 10);
        assert_true(number == 1 || number == 2);
        sum += number;
    }
    assert_int_equal(sum, (weight_ns + 500) / 1000);
    free(text);
    for (unsigned i = 0; i < 1000; i++)
        free((char *)s.frames.data[i].function);
    synthetic_deinit(&s);
}

/* Times are comparable, whatever the event; other events stand for themselves. */
TEST(weights_of_events)
{
    struct synthetic s = {0};

    setup_one(&s);
    synthetic_event(&s, "page-faults", "faults", false);
    synthetic_event(&s, "task-clock", "ns", true);
    uint32_t f = named(&s, "f");
    weighed(&s, 0, f, 10000000);
    weighed(&s, 1, f, 5);
    expect(&s, "folded", plain, "cpu-clock;python3-100;f 1\npage-faults;python3-100;f 1\n");
    assert_null(remark(&s, "folded", plain));
    weighed(&s, 1, f, 1);
    expect(&s, "folded", plain, "cpu-clock;python3-100;f 1\npage-faults;python3-100;f 6\n");
    assert_non_null(strstr(remark(&s, "folded", plain), "the event's"));
    assert_true(contains(&s, "top", plain, "2 samples of page-faults: 6 faults\n"));
    weighed(&s, 2, f, 2000000);
    expect(&s, "folded", plain,
           "cpu-clock;python3-100;f 10000\npage-faults;python3-100;f 6\ntask-clock;python3-100;f 2000\n");
    synthetic_deinit(&s);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In the order of whole lines, not of frames: ' ' sorts before ';'. */
/* What is counted is shown by its counts, even where all samples weigh the same; page faults as bytes. */
TEST(counted_events)
{
    struct synthetic s = {0};

    setup_frame(&s, synthetic_mark(&s, "f"));
    synthetic_event(&s, "page-faults", "bytes", false);
    s.events.data[1].is_bytes = s.events.data[1].is_counted = true;
    synthetic_event(&s, "context-switches", "switches", false);
    s.events.data[2].is_counted = true;
    for (int i = 0; i < 2; i++) {
        synthetic_sample(&s, (struct emit_sample){.time_ns = 1, .value = 65536, .faults = 16, .event = 1});
        synthetic_sample(&s, (struct emit_sample){.time_ns = 1, .value = 16, .event = 2});
    }
    expect(&s, "folded", plain,
           "context-switches;python3-100;f 32\ncpu-clock;python3-100;f 1\npage-faults;python3-100;f 131072\n");
    assert_true(contains(&s, "top", plain, "2 samples of page-faults: 128.0 KiB\n"));
    assert_true(contains(&s, "top", plain, "2 samples of context-switches: 32 switches\n"));
    assert_true(contains(&s, "perf-script", plain, ":         16 page-faults: \n"));
    assert_true(contains(&s, "perf-script", plain, ":         16 context-switches: \n"));
    assert_true(contains(&s, "perf-script", plain, ":          1 cpu-clock: \n"));
    assert_true(contains(&s, "speedscope", plain, "page-faults\",\"unit\":\"bytes\",\"startValue\":0,\"endValue\":131072"));
    assert_true(contains(&s, "speedscope", plain, "context-switches\",\"unit\":\"none\",\"startValue\":0,\"endValue\":32"));
    synthetic_deinit(&s);
}

TEST(folded_is_sorted)
{
    static const char *const names[] = {"foo", "foo bar", "foo!", "foo <x>", "foo;", "f", "\xc3\xa9", "foo 1x", "foo:"};
    struct synthetic s = {0};
    uint32_t random = 7, stacks[400], stack_count = 0, frames[9];

    setup_one(&s);
    for (int i = 0; i < 9; i++)
        frames[i] = synthetic_native(&s, names[i], "/x", 1, 1);
    for (int i = 0; i < 400; i++) {
        random = random * 1103515245 + 12345;
        uint32_t parent = stack_count && random >> 20 & 3 ? stacks[(random >> 8) % stack_count] : EMIT_NO_STACK;
        stacks[stack_count++] = synthetic_stack(&s, parent, frames[(random >> 16) % 9]);
        for (uint32_t n = 0; n < (random >> 12 & 15); n++)
            sample(&s, 0, stacks[stack_count - 1]);
    }
    char *text = emit(&s, "folded", plain), *lines[1000], *save = NULL;
    size_t count = 0;
    unsigned long total = 0;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        assert_true(count < 1000);
        total += strtoul(strrchr(line, ' '), NULL, 10);
        lines[count++] = line;
    }
    assert_int_equal(total, s.samples.count);
    assert_true(count > 50);
    for (size_t i = 1; i < count; i++) {
        assert_true(compare_lines(&lines[i - 1], &lines[i]) < 0);
        /* and no stack twice */
        size_t len = (size_t)(strrchr(lines[i], ' ') - lines[i]);
        assert_false(!strncmp(lines[i - 1], lines[i], len) && lines[i - 1][len] == ' ' &&
                     !strchr(lines[i - 1] + len + 1, ' ') && !strchr(lines[i - 1] + len, ';'));
    }
    free(text);
    synthetic_deinit(&s);
}

/* Counts of different events do not add up to anything: they stay apart. */
TEST(several_events)
{
    struct synthetic s = {0};

    setup_frame(&s, synthetic_python(&s, "f", "x.py", 1, 0, 0));
    synthetic_event(&s, "page-faults", "", false);
    sample(&s, 0, 0);
    s.samples.data[1].event = 1;
    s.samples.data[1].value = 5;
    expect(&s, "folded", plain, "cpu-clock;python3-100;f (x.py:1) 1\npage-faults;python3-100;f (x.py:1) 1\n");
    assert_true(contains(&s, "speedscope", by_thread, "\"python3-100 MainThread 101 cpu-clock\",\"unit\":\"nanoseconds\""));
    assert_true(contains(&s, "speedscope", by_thread,
                         "\"python3-100 MainThread 101 page-faults\",\"unit\":\"none\","
                         "\"startValue\":0,\"endValue\":5,"));
    assert_true(contains(&s, "top", plain, "1 sample of page-faults: 5 page-faults\n"));
    /* One event that is not time: its name still tells the unit. */
    s.samples.data[0] = s.samples.data[1];
    s.samples.count = 1;
    expect(&s, "folded", plain, "python3-100;f (x.py:1) 1\n");
    assert_true(contains(&s, "speedscope", by_thread, "\"python3-100 MainThread 101 page-faults\",\"unit\":\"none\""));
    synthetic_deinit(&s);
}

TEST(unknown_names)
{
    struct synthetic s = {0};

    setup_one(&s);
    uint32_t stack = synthetic_stack(&s, EMIT_NO_STACK, synthetic_native(&s, "", "/usr/lib/libfoo.so", 1, 0));
    stack = synthetic_stack(&s, stack, synthetic_native(&s, "", "[vdso]", 2, 0));
    stack = synthetic_stack(&s, stack, synthetic_native(&s, "", "/tmp/perf-100.map", 7, 0));
    stack = synthetic_stack(&s, stack, synthetic_native(&s, "", "/tmp/perf-x.map", 8, 0));
    stack = synthetic_stack(&s, stack, synthetic_native(&s, "", "", 3, 0));
    stack = synthetic_stack(&s, stack, synthetic_python(&s, "", "/x.py", 4, 0, 0));
    stack = synthetic_stack(&s, stack, synthetic_python(&s, "", "", 0, 0, 0));
    stack = synthetic_stack(&s, stack, synthetic_kernel(&s, "", "", 5, 0));
    sample(&s, 0, stack);
    s.processes.data[0].comm = s.processes.data[0].name = "";
    expect(&s, "folded", plain,
           "unknown-100;[libfoo.so];[vdso];[jit];[perf-x.map];[unknown];[unknown] (x.py:4);[unknown];[unknown]_[k] 1\n");
    expect(&s, "perf-script", plain,
           "unknown      100/101     [003]    10.000001:          1 cpu-clock: \n"
           "\t               5 [unknown] ([kernel.kallsyms])\n"
           "\t               0 py::[unknown] (/usr/bin/python3.12)\n"
           "\t               0 py::[unknown]:/x.py:4 (/usr/bin/python3.12)\n"
           "\t               3 [unknown] ([unknown])\n"
           "\t               8 [unknown] (/tmp/perf-x.map)\n"
           "\t               7 [unknown] (/tmp/perf-100.map)\n"
           "\t               2 [unknown] (vdso)\n"
           "\t               1 [unknown] (/usr/lib/libfoo.so)\n"
           "\n");
    synthetic_deinit(&s);
}

/* ---- speedscope: traps ---- */

TEST(speedscope_invalid_utf8)
{
    static const char *const bad[] = {"\xff",     "\xc3", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80",
                                      "\xe2\x82", "\x80"};
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_one(&s);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, bad[i], bad[i], 1, 0, 0)));
    sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "\"\\\t\xf0\x9f\x90\x8d", "x.py", 1, 0, 0)));
    s.processes.data[0].comm = s.processes.data[0].name = s.threads.data[0].name = o.name = o.exporter = "\xff\"\n";
    o.full_paths = true;
    json_t *json = parse_speedscope(&s, o);
    json_t *frames = json_object_get(json_object_get(json, "shared"), "frames");
    assert_string_equal(json_string_value(json_object_get(json_array_get(frames, 0), "name")),
                        "\xef\xbf\xbd (\xef\xbf\xbd:1)");
    assert_string_equal(json_string_value(json_object_get(json_array_get(frames, json_array_size(frames) - 1), "name")),
                        "\"\\_\xf0\x9f\x90\x8d (x.py:1)");
    json_decref(json);
    synthetic_deinit(&s);
}

/* Nameless with no profiles throws; with a name and none, nothing can be shown. */
TEST(speedscope_without_samples)
{
    struct synthetic s = {0};
    struct emit_options none = {0};

    json_t *json = parse_speedscope(&s, none);
    assert_string_equal(json_string_value(json_object_get(json, "name")), "profile");
    assert_int_equal(json_array_size(json_object_get(json, "profiles")), 1);
    json_decref(json);
    expect(&s, "folded", none, "");
    expect(&s, "perf-script", none, "");
    expect(&s, "top", none, "0 samples\n");
}

/* samples and weights of unequal length throw; far more samples than fit in memory blocks, in interleaved threads. */
TEST(speedscope_spools)
{
    enum { THREADS = 5, EACH = 3000 };
    struct synthetic s = {0};
    uint32_t stacks[7];

    synthetic_process(&s, 1, "python3");
    synthetic_event(&s, "cpu-clock", "ns", true);
    for (uint32_t t = 0; t < THREADS; t++)
        synthetic_thread(&s, 0, 10 + t, "t");
    for (uint32_t i = 0; i < 7; i++)
        stacks[i] = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "x.py", i + 1, 0, 0));
    for (uint32_t i = 0; i < EACH; i++) {
        for (uint32_t t = 0; t < THREADS; t++)
            sample(&s, t, stacks[(i + t) % 7]);
    }
    s.samples.data[3].value = 50000000; /* thread 3 is the heaviest */
    json_t *json = parse_speedscope(&s, by_thread);
    json_t *profiles = json_object_get(json, "profiles");
    assert_int_equal(json_array_size(profiles), THREADS);
    assert_int_equal(json_integer_value(json_object_get(json, "activeProfileIndex")), 3);
    for (uint32_t t = 0; t < THREADS; t++) {
        json_t *p = json_array_get(profiles, t);
        json_t *samples = json_object_get(p, "samples"), *weights = json_object_get(p, "weights");
        json_int_t sum = 0;
        assert_int_equal(json_array_size(samples), EACH);
        assert_int_equal(json_array_size(weights), EACH);
        for (uint32_t i = 0; i < EACH; i++) {
            sum += json_integer_value(json_array_get(weights, i));
            assert_int_equal(json_integer_value(json_array_get(json_array_get(samples, i), 0)), (i + t) % 7);
        }
        assert_int_equal(sum, json_integer_value(json_object_get(p, "endValue")));
        assert_int_equal(sum, EACH * 10000000ll + (t == 3 ? 40000000 : 0));
    }
    json_decref(json);
    synthetic_deinit(&s);
}

/* A thousand threads that each spill, with few files allowed. */
TEST(speedscope_many_threads)
{
    struct synthetic s = {0};
    struct rlimit was, few;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    few = was;
    few.rlim_cur = 32;
    synthetic_process(&s, 1, "python3");
    synthetic_event(&s, "cpu-clock", "ns", true);
    uint32_t a = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "x.py", 1, 0, 0));
    uint32_t b = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "x.py", 2, 0, 0));
    for (uint32_t t = 0; t < 1000; t++)
        synthetic_thread(&s, 0, 10 + t, "t");
    for (uint32_t i = 0; i < 300; i++) {
        for (uint32_t t = 0; t < 1000; t++)
            sample(&s, t, i % 2 ? a : b);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    char *text = emit(&s, "speedscope", by_thread);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_true(strlen(text) > 300000);
    free(text);
    synthetic_deinit(&s);
}

TEST(speedscope_bad_temporary_folder)
{
    struct synthetic s = {0};

    setup_one(&s);
    uint32_t a = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "x.py", 1, 0, 0));
    uint32_t b = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "x.py", 2, 0, 0));
    for (int i = 0; i < 1000; i++)
        sample(&s, 0, i % 2 ? a : b);
    char *was = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    setenv("TMPDIR", "/no/such/folder", 1);
    FILE *out = fopen("/dev/null", "w");
    struct error *err = synthetic_emit(&s, emitter_find("speedscope"), &plain, out);
    fclose(out);
    assert_non_null(err);
    assert_non_null(strstr(error_text(err), "/no/such/folder"));
    error_destroy(err);
    if (was)
        setenv("TMPDIR", was, 1);
    else
        unsetenv("TMPDIR");
    free(was);
    synthetic_deinit(&s);
}

/* Native frames of a function are one frame, whatever the line: frames are told apart by their number. */
TEST(speedscope_native_lines_do_not_split)
{
    struct synthetic s = {0};

    setup_one(&s);
    for (uint32_t line = 1; line < 4; line++)
        sample(&s, 0,
               synthetic_stack(&s, EMIT_NO_STACK,
                               synthetic_frame(&s, (struct emit_frame){.kind = EMIT_NATIVE,
                                                                       .function = "memcpy",
                                                                       .file = "/build/memcpy.c",
                                                                       .line = line,
                                                                       .module = "/libc.so",
                                                                       .address = line})));
    assert_true(contains(&s, "speedscope", plain, "[\n{\"name\":\"memcpy\",\"file\":\"/build/memcpy.c\"}\n]"));
    assert_true(contains(&s, "speedscope", plain, "\"samples\":[[0]],\n\"weights\":[30000000]"));
    synthetic_deinit(&s);
}

/* A function of a built-in module says which, but not where readers of perf-script look names up. */
TEST(builtin_modules)
{
    struct synthetic s = {0};

    setup_one(&s);
    sample(&s, 0,
           synthetic_stack(&s, EMIT_NO_STACK,
                           synthetic_frame(&s, (struct emit_frame){.kind = EMIT_NATIVE,
                                                                   .function = "r_object",
                                                                   .builtin = "marshal",
                                                                   .file = "Python/marshal.c",
                                                                   .line = 7,
                                                                   .module = "/bin/python3",
                                                                   .address = 0x40})));
    assert_true(contains(&s, "folded", plain, ";r_object (marshal) 1\n"));
    assert_true(contains(&s, "speedscope", plain, "{\"name\":\"r_object (marshal)\",\"file\":\"Python/marshal.c\"}"));
    assert_true(contains(&s, "perf-script", plain, "40 r_object+0x0 (/bin/python3)\n"));
    struct emit_options by_line = plain;
    by_line.by = EMIT_BY_LINE;
    assert_true(contains(&s, "top", by_line, " r_object (marshal.c:7)\n"));
    synthetic_deinit(&s);
}

/* ---- perf-script: traps ---- */

/* stackcollapse drops the last sample without it, speedscope wants it to be truly empty. */
TEST(perf_ends_with_empty_lines)
{
    struct synthetic s = {0};

    setup_small(&s);
    char *text = emit(&s, "perf-script", plain);
    size_t len = strlen(text), empty = 0;
    assert_string_equal(text + len - 2, "\n\n");
    for (const char *p = text; (p = strstr(p, "\n\n")); p += 2)
        empty++;
    assert_int_equal(empty, s.samples.count);
    free(text);
    synthetic_deinit(&s);
}

/* Headers never start with white space, frames always do, leaf first; nothing else is there. */
TEST(perf_lines)
{
    struct synthetic s = {0};
    char *save = NULL;
    size_t headers = 0;

    synthetic_demo(&s, 500);
    char *text = emit(&s, "perf-script", plain);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        unsigned pid, tid, cpu, period;
        unsigned long sec, usec;
        unsigned long long address;
        char comm[64], event[32], symbol[400];
        if (line[0] == '\t') {
            assert_int_equal(sscanf(line, "\t%llx %399[^\n]", &address, symbol), 2);
            char *binary = strrchr(symbol, '(');
            assert_non_null(binary);
            assert_true(binary[-1] == ' ');
            assert_null(strchr(binary, ' '));
            assert_ptr_equal(strchr(binary, ')'), binary + strlen(binary) - 1);
            assert_true(symbol[0] != '(');
            assert_null(strstr(symbol, "->"));
            continue;
        }
        assert_int_equal(
            sscanf(line, "%63s  %u/%u [%u] %lu.%6lu: %u %31s", comm, &pid, &tid, &cpu, &sec, &usec, &period, event), 8);
        assert_memory_equal(line + strlen(comm), "  ", 2);
        assert_int_equal(period, 1);
        assert_string_equal(event, "cpu-clock:");
        headers++;
    }
    assert_int_equal(headers, 500);
    free(text);
    synthetic_deinit(&s);
}

/* One letter, or a number inside, breaks parsers; '#' makes a comment, '{' at the start JSON. */
TEST(perf_comm)
{
    static const char *const comms[][2] = {{"p", "p  "},
                                           {"app 123 x", "app_123_x  "},
                                           {"#x", "_x  "},
                                           {"{x", "_x  "},
                                           {"", "unknown  "},
                                           {"a\tb;c", "a_b:c  "},
                                           {"a\xc2\xa0"
                                            "1",
                                            "a_1  "}};

    for (size_t i = 0; i < sizeof comms / sizeof *comms; i++) {
        struct synthetic s = {0};
        setup_frame(&s, synthetic_python(&s, "f", "x.py", 1, 0, 0));
        s.processes.data[0].comm = comms[i][0];
        char *text = emit(&s, "perf-script", plain);
        assert_memory_equal(text, comms[i][1], strlen(comms[i][1]));
        free(text);
        synthetic_deinit(&s);
    }
    struct synthetic s = {0};
    struct emit_options threads = plain;
    threads.threads = true;
    setup_frame(&s, synthetic_python(&s, "f", "x.py", 1, 0, 0));
    char *text = emit(&s, "perf-script", threads);
    assert_memory_equal(text, "MainThread  ", 12);
    free(text);
    synthetic_deinit(&s);
}

TEST(perf_symbols)
{
    static const struct {
        struct emit_frame frame;
        const char *expected;
    } cases[] = {
        /* '(' at the start: the frame would be skipped. */
        {{.kind = EMIT_NATIVE, .function = "(anonymous namespace)::f(int)", .module = "/x"},
         "{anonymous}::f(int)+0x0 (/x)"},
        {{.kind = EMIT_NATIVE, .function = "(odd", .module = "/x"}, "{odd+0x0 (/x)"},
        /* "->" would be split into an inlined function. */
        {{.kind = EMIT_NATIVE, .function = "A::operator->()", .module = "/x"}, "A::operator\xe2\x86\x92()+0x0 (/x)"},
        /* A Python name would be cut at '('. */
        {{.kind = EMIT_PYTHON, .function = "f", .file = "/a b (1)/x;.py", .module = "/p", .line = 2},
         "py::f:/a b [1]/x:.py:2 (/p)"},
        /* speedscope drops frames whose binary has a space; Firefox stops at ')'. */
        {{.kind = EMIT_NATIVE, .function = "f", .module = "/my libs (1)/x.so"}, "f+0x0 (/my_libs_[1]/x.so)"},
        {{.kind = EMIT_NATIVE, .function = "f", .module = "/x.so (deleted)"}, "f+0x0 (/x.so)"},
        /* A bracket says kernel. */
        {{.kind = EMIT_NATIVE, .function = "f", .module = "[vdso]"}, "f+0x0 (vdso)"},
        {{.kind = EMIT_KERNEL, .function = "f", .module = "[ext4]", .symbol_offset = 31},
         "f+0x1f ([kernel.kallsyms:ext4])"},
        {{.kind = EMIT_NATIVE, .function = "f", .module = "/x", .inlined = true}, "f (inlined)"},
        {{.kind = EMIT_MARK, .function = "[truncated]", .module = ""}, "[truncated] ([unknown])"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct emit_frame f = cases[i].frame;
        struct buf text = {0};
        f.file = f.file ? f.file : "";
        name_perf(&f, &plain, &text);
        assert_string_equal(buf_cstr(&text), cases[i].expected);
        buf_deinit(&text);
    }
}

/* An inlined frame and the one it is inlined into have one address. */
TEST(perf_inlined)
{
    struct synthetic s = {0};

    setup_one(&s);
    uint32_t outer = synthetic_stack(&s, EMIT_NO_STACK, synthetic_native(&s, "outer", "/x.so", 0x40, 4));
    sample(&s, 0,
           synthetic_stack(&s, outer,
                           synthetic_frame(&s, (struct emit_frame){.kind = EMIT_NATIVE,
                                                                   .function = "inner",
                                                                   .module = "/x.so",
                                                                   .address = 0x40,
                                                                   .inlined = true})));
    assert_true(contains(&s, "perf-script", plain,
                         "\n\t              40 inner (inlined)\n\t              40 outer+0x4 (/x.so)\n\n"));
    synthetic_deinit(&s);
}

/* ---- all ---- */

/* Samples without frames are kept by all. */
TEST(no_frames)
{
    struct synthetic s = {0};

    setup_one(&s);
    sample(&s, 0, EMIT_NO_STACK);
    sample(&s, 0, EMIT_NO_STACK);
    expect(&s, "folded", plain, "python3-100;[no frames] 2\n");
    assert_true(contains(&s, "speedscope", plain, "\"samples\":[[0]],\n\"weights\":[20000000]"));
    assert_true(contains(&s, "perf-script", plain, "\t               0 [no frames] ([unknown])\n\n"));
    assert_true(contains(&s, "top", plain, " 100.0% 20.0 ms ########  100.0% 20.0 ms  [no frames]\n"));
    synthetic_deinit(&s);
}

/* The formats agree on the samples of each thread and of all. */
TEST(formats_agree)
{
    struct synthetic s = {0};
    struct emit_options threads = plain;
    char *save = NULL;

    synthetic_demo(&s, 3000);
    threads.threads = true;
    json_t *json = parse_speedscope(&s, threads);
    char *folded = emit(&s, "folded", threads), *perf = emit(&s, "perf-script", threads);
    uint64_t truth[16] = {0}, in_folded[16] = {0}, in_perf[16] = {0};
    for (size_t i = 0; i < s.samples.count; i++)
        truth[s.samples.data[i].thread]++;
    for (char *line = strtok_r(folded, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        for (uint32_t t = 0; t < s.model.thread_count; t++) {
            char tid[20];
            snprintf(tid, sizeof tid, "-%u", s.model.threads[t].tid);
            char *second = strchr(line, ';') + 1, *end = strchr(second, ';');
            if (!strncmp(end - strlen(tid), tid, strlen(tid)))
                in_folded[t] += strtoul(strrchr(line, ' '), NULL, 10);
        }
    }
    for (char *line = strtok_r(perf, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        unsigned tid;
        if (line[0] != '\t' && sscanf(line, "%*s %*u/%u", &tid) == 1) {
            for (uint32_t t = 0; t < s.model.thread_count; t++)
                in_perf[t] += s.model.threads[t].tid == tid;
        }
    }
    json_t *profiles = json_object_get(json, "profiles");
    assert_int_equal(json_array_size(profiles), s.model.thread_count);
    for (uint32_t t = 0; t < s.model.thread_count; t++) {
        json_t *p = json_array_get(profiles, t);
        char tid[20];
        snprintf(tid, sizeof tid, " %u", s.model.threads[t].tid);
        const char *name = json_string_value(json_object_get(p, "name"));
        assert_string_equal(name + strlen(name) - strlen(tid), tid);
        assert_true(truth[t] > 0);
        assert_int_equal(in_folded[t], truth[t]);
        assert_int_equal(in_perf[t], truth[t]);
        assert_int_equal(json_integer_value(json_object_get(p, "endValue")), truth[t] * 10101010);
    }
    assert_true(contains(&s, "top", plain, "3,000 samples of cpu-clock: 30.3 s of CPU time\n"));
    json_decref(json);
    free(folded);
    free(perf);
    synthetic_deinit(&s);
}

TEST(equal_input_gives_equal_bytes)
{
    struct synthetic s = {0};

    synthetic_demo(&s, 3000);
    for (const struct emitter *const *e = emitters; *e; e++) {
        size_t one_bytes, two_bytes;
        if ((*e)->needs_files) /* test_perf_data.c */
            continue;
        char *one = emit_bytes(&s, (*e)->name, plain, &one_bytes), *two = emit_bytes(&s, (*e)->name, plain, &two_bytes);
        assert_int_equal(one_bytes, two_bytes);
        assert_memory_equal(one, two, one_bytes);
        free(one);
        free(two);
    }
    synthetic_deinit(&s);
}

TEST(table)
{
    assert_null(emitter_find("nonsense"));
    for (const struct emitter *const *e = emitters; *e; e++) {
        assert_ptr_equal(emitter_find((*e)->name), *e);
        assert_true((*e)->description && (*e)->extension && (*e)->extension[0] == '.');
        (*e)->destroy(NULL);
    }
}

/* A full disk is an error. */
TEST(full_disk)
{
    struct synthetic s = {0};

    synthetic_demo(&s, 3000);
    for (const struct emitter *const *e = emitters; *e; e++) {
        if ((*e)->needs_files) /* test_perf_data.c */
            continue;
        FILE *out = fopen("/dev/full", "w");
        assert_non_null(out);
        setvbuf(out, NULL, _IONBF, 0);
        struct error *err = synthetic_emit(&s, *e, &plain, out);
        assert_non_null(err);
        assert_non_null(strstr(error_text(err), "No space left"));
        error_destroy(err);
        fclose(out);
    }
    synthetic_deinit(&s);
}
