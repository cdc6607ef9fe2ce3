/* SPDX-License-Identifier: Apache-2.0 */
/* Names, numbers and sums at their ends in folded, speedscope and perf-script, and what holds of every format. test_formats_golden.c has the rest. */
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

/* ---- names of files ---- */

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

/* One event that is no time: its name tells the unit. */
TEST(event_without_unit)
{
    struct synthetic s = {0};

    setup_one(&s);
    weighed(&s, synthetic_event(&s, "page-faults", "", false), named(&s, "f"), 5);
    expect(&s, "folded", plain, "python3-100;f 1\n");
    assert_true(contains(&s, "speedscope", by_thread, "\"python3-100 MainThread 101 page-faults\",\"unit\":\"none\""));
    assert_true(contains(&s, "top", plain, "1 sample of page-faults: 5 page-faults\n"));
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

/* ---- perf-script: traps ---- */

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

/* ---- all ---- */

TEST(table)
{
    assert_null(emitter_find("nonsense"));
    for (const struct emitter *const *e = emitters; *e; e++) {
        assert_ptr_equal(emitter_find((*e)->name), *e);
        assert_true((*e)->description && (*e)->extension && (*e)->extension[0] == '.');
        (*e)->destroy(NULL);
    }
}
