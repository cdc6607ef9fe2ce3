/* SPDX-License-Identifier: Apache-2.0 */
/* The pprof emitter at its ends: what is told apart, events, names, binaries, times and limits; decoded by pprof_text.h. */
#include "tests/unit/emit_fixture.h"
#include "tests/unit/pprof_text.h"

/* The caller frees it. */
static char *profile(const struct synthetic *s, struct emit_options options)
{
    size_t len;
    char *bytes = emit_bytes(s, "pprof", options, &len);
    struct buf raw = pprof_unzip(bytes, len), text = {0};

    pprof_put_profile((struct pprof_bytes){raw.data, raw.len_bytes}, &text);
    buf_deinit(&raw);
    free(bytes);
    buf_cstr(&text);
    assert_false(text.bad);
    return (char *)text.data;
}

static void expect_profile(const struct synthetic *s, struct emit_options options, const char *golden)
{
    char *text = profile(s, options);

    assert_string_equal(text, golden);
    free(text);
}

static bool has(const struct synthetic *s, struct emit_options options, const char *part)
{
    char *text = profile(s, options);
    bool found = strstr(text, part);

    if (!found)
        print_error("no '%s' in:\n%s\n", part, text);
    free(text);
    return found;
}

/* What is told apart is up to --merge; the rows of what is not are added up. */
TEST(labels)
{
    struct synthetic s = {0};
    struct emit_options options = plain;
    struct emit_label task[] = {{"asyncio task", "fetch;1"}};
    struct emit_label_set sets[] = {{0}, {task, 1}};

    setup_small(&s);
    options.merge = EMIT_MERGE_ALL;
    assert_true(has(&s, options, "sample 4 3 2 1: 3 30000000\n"));
    options.merge = EMIT_MERGE_PROCESS;
    assert_true(has(&s, options, "sample 4 3 2 1: 3 30000000 process=python3 pid=100\n"));
    s.processes.data[0].container = "0123456789ab";
    assert_true(has(&s, options, " process=python3 pid=100 container=0123456789ab\n"));
    options.merge = EMIT_MERGE_ALL;
    options.label_cpu = true;
    s.samples.data[0].cpu = 0; /* a number that is not written */
    assert_true(has(&s, options, "sample 4 3 2 1: 1 10000000 cpu=0 count\nsample 4 3 2 1: 2 20000000 cpu=3\n"));
    options.label_cpu = false;
    s.model.label_sets = sets;
    s.model.label_set_count = 2;
    s.samples.data[0].label_set = s.samples.data[1].label_set = 1;
    s.samples.data[1].gil = EMIT_GIL_NOT_HELD;
    s.samples.data[2].gil = EMIT_GIL_HELD;
    assert_true(has(&s, options, "sample 4 3 2 1: 3 30000000\n"));
    options.labels = true;
    assert_true(has(&s, options,
                    "sample 4 3 2 1: 1 10000000 asyncio_task=fetch:1\n"
                    "sample 4 3 2 1: 1 10000000 asyncio_task=fetch:1 gil=not held\n"
                    "sample 4 3 2 1: 1 10000000 gil=held\n"));
    s.threads.data[0].name = s.threads.data[1].name = ""; /* is no label */
    assert_true(has(&s, plain, "pid=100 container=0123456789ab tid=101\n"));
    synthetic_deinit(&s);
}

/* Each event has its own two values, and rows have 0 for the others; time comes first. */
TEST(events)
{
    struct synthetic s = {0};
    struct emit_rate rate = {.event = 1, .frequency_hz = 99, .period = 10101010};
    struct emit_capture capture = {.name = "a.bin", .hostname = "", .kernel_release = "", .recorder = "", .rates = &rate, .rate_count = 1};

    synthetic_thread(&s, synthetic_process(&s, 100, "python3"), 101, "MainThread");
    s.model.captures = &capture;
    s.model.capture_count = 1;
    synthetic_event(&s, "page-faults", "bytes", false);
    synthetic_event(&s, "cpu-clock", "ns", true);
    synthetic_event(&s, "page.faults", "switches", false);
    synthetic_event(&s, "unused", "", false);
    s.events.data[0].kind = EVENT_BYTES;
    uint32_t f = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "a.py", 1, 0, 1));
    for (uint32_t event = 0; event < 3; event++)
        synthetic_sample(&s, (struct emit_sample){.event = event, .stack = f, .value = 100 + event});
    struct emit_options options = {.merge = EMIT_MERGE_ALL};
    assert_true(has(&s, options,
                    "type samples/count\ntype cpu/nanoseconds\n"
                    "type page_faults_samples/count\ntype page_faults/bytes\n"
                    "type page_faults_3_samples/count\ntype page_faults_3/count\n"
                    "period cpu/nanoseconds\ndefault cpu\nevery 10101010 from 0 for 0\n"
                    "sample 1: 0 0 1 100 0 0\n"
                    "sample 1: 1 101 0 0 0 0\n"
                    "sample 1: 0 0 0 0 1 102\n"));
    synthetic_deinit(&s);
}

/* An event of any name, and sums beyond what a signed number holds. */
TEST(extremes)
{
    struct synthetic s = {0};

    synthetic_thread(&s, synthetic_process(&s, 100, "python3"), 101, "MainThread");
    synthetic_event(&s, "samples", "\xff", false);
    for (int i = 0; i < 3; i++)
        synthetic_sample(&s, (struct emit_sample){.stack = EMIT_NO_STACK, .value = UINT64_MAX - 1});
    assert_true(has(&s, (struct emit_options){.merge = EMIT_MERGE_ALL},
                    "type samples/count\ntype samples_1/count\nperiod samples_1/count\ndefault samples_1\n"));
    assert_true(has(&s, (struct emit_options){.merge = EMIT_MERGE_ALL}, "sample 1: 3 9223372036854775807\n"));
    assert_true(has(&s, plain, "mapping 1 [python]  F---\nlocation 1 M1 0 F1:0:0\nfunction 1 [no frames] :0\n"));
    synthetic_deinit(&s);
}

TEST(nothing)
{
    struct synthetic s = {0};

    expect_profile(&s, plain,
                   "type samples/count\ntype cpu/nanoseconds\nperiod cpu/nanoseconds\ndefault cpu\n"
                   "every 0 from 0 for 0\ncomment converted by pysym test\n");
    synthetic_deinit(&s);
}

TEST(names)
{
    struct synthetic s = {0};
    struct emit_options options = {.merge = EMIT_MERGE_ALL};

    setup_one(&s);
    const char *const files[] = {"/srv/app.py", "/opt/app.py", "/usr/lib/python3.12/json/__init__.py",
                                 "<frozen importlib._bootstrap>", "<string>", ""};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "<module>", files[i], 1, 2, 1)));
        sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "C.<lambda>", files[i], 3, 4, 3)));
    }
    assert_true(has(&s, options,
                    "function 1 <module srv/app> /srv/app.py:1\n"
                    "function 2 C.<lambda> /srv/app.py:3\n"
                    "function 3 <module opt/app> /opt/app.py:1\n"
                    "function 4 C.<lambda> /opt/app.py:3\n"
                    "function 5 <module json/__init__> /usr/lib/python3.12/json/__init__.py:1\n"
                    "function 6 C.<lambda> /usr/lib/python3.12/json/__init__.py:3\n"
                    "function 7 <module <frozen importlib._bootstrap>> <frozen importlib._bootstrap>:1\n"
                    "function 8 C.<lambda> <frozen importlib._bootstrap>:3\n"
                    "function 9 <module <string>> <string>:1\n"
                    "function 10 C.<lambda> <string>:3\n"
                    "function 11 <module> :1\n"
                    "function 12 C.<lambda> :3\n"));
    options.qualify = true;
    assert_true(has(&s, options,
                    "function 1 srv/app.py:<module> /srv/app.py:1\n"
                    "function 2 srv.app.C.<lambda> /srv/app.py:3\n"
                    "function 3 opt/app.py:<module> /opt/app.py:1\n"
                    "function 4 opt.app.C.<lambda> /opt/app.py:3\n"
                    "function 5 json/__init__.py:<module> /usr/lib/python3.12/json/__init__.py:1\n"
                    "function 6 json.C.<lambda> /usr/lib/python3.12/json/__init__.py:3\n"
                    "function 7 <frozen importlib._bootstrap>:<module> <frozen importlib._bootstrap>:1\n"
                    "function 8 importlib._bootstrap.C.<lambda> <frozen importlib._bootstrap>:3\n"
                    "function 9 <string>:<module> <string>:1\n"
                    "function 10 <string>.C.<lambda> <string>:3\n"
                    "function 11 <module> :1\n"
                    "function 12 C.<lambda> :3\n"));
    sample(&s, 0, synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, " ", "", 0, 0, 0)));
    assert_true(has(&s, options, "function 13 [unknown] :0\n"));
    options = (struct emit_options){.merge = EMIT_MERGE_ALL, .columns = true};
    assert_true(has(&s, options, "location 1 M2 0 F1:1:2\nlocation 2 M2 0 F2:3:4\n"));
    synthetic_deinit(&s);
}

/* One binary with a header, whose frames are two functions inlined into a third, and one without a name. */
static void setup_binary(struct synthetic *s, const char *unnamed_path)
{
    static const uint8_t build_id[] = {0xab, 0xcd};
    static const struct emit_segment segments[] = {
        {.vaddr = 0, .file_offset = 0, .file_size = 0x800, .memory_size = 0x800, .flags = 4},
        {.vaddr = 0x401234, .file_offset = 0x1234, .file_size = 0x2000, .memory_size = 0x2000, .flags = 5}};
    static const char path[] = "/usr/lib/lib.so";

    setup_one(s);
    uint32_t outer = synthetic_native(s, "outer", path, 0x1500, 0), stack = EMIT_NO_STACK;
    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"outer", "middle", "inner"};
        uint32_t frame = i ? synthetic_native(s, names[i], path, 0x1500, 0) : outer;
        s->frames.data[frame].inlined = i;
        s->frames.data[frame].line = 10 + (uint32_t)i;
        s->frames.data[frame].file = "/src/l.c";
        s->frames.data[frame].return_address = true;
        stack = synthetic_stack(s, stack, frame);
    }
    sample(s, 0, s->stacks.data[stack].parent);
    stack = synthetic_stack(s, stack, synthetic_native(s, "", unnamed_path, 0x1800, 0));
    sample(s, 0, stack);
    for (uint32_t i = 0; i < s->model.mapping_count; i++) {
        s->mappings.data[i].build_id = build_id;
        s->mappings.data[i].build_id_len = sizeof build_id;
        s->mappings.data[i].segments = segments;
        s->mappings.data[i].segment_count = 2;
    }
}

/*
 * Inlined functions are lines of one location, the innermost first. An address is the file's virtual one, and that of a
 * call rather than of the instruction behind it. Code without a name has no line.
 */
TEST(native)
{
    const struct emit_options options = {.merge = EMIT_MERGE_ALL};
    struct synthetic s = {0};

    setup_binary(&s, "/usr/lib/lib.so");
    assert_true(has(&s, options,
                    "sample 1: 1 10000000\n"
                    "sample 3 2: 1 10000000\n"
                    "mapping 1 /usr/lib/lib.so 401000-404000 @1000 abcd FFLI\n"
                    "location 1 M1 4014ff F1:11:0 F2:10:0\n"
                    "location 2 M1 4014ff F3:12:0 F1:11:0 F2:10:0\n"
                    "location 3 M1 401800\n"
                    "function 1 middle /src/l.c:0\n"
                    "function 2 outer /src/l.c:0\n"
                    "function 3 inner /src/l.c:0\n"));
    synthetic_deinit(&s);
}

/* A binary without any name may be symbolized later; what is no binary is called by its mapping. */
TEST(unnamed)
{
    const struct emit_options options = {.merge = EMIT_MERGE_ALL};
    struct synthetic s = {0}, jit = {0};

    setup_binary(&s, "/usr/lib/other.so");
    assert_true(has(&s, options, "mapping 2 /usr/lib/other.so 401000-404000 @1000 abcd ----\n"));
    synthetic_deinit(&s);
    setup_one(&jit);
    sample(&jit, 0, synthetic_stack(&jit, EMIT_NO_STACK, synthetic_native(&jit, "", "/tmp/perf-12.map", 5, 0)));
    uint32_t nowhere = synthetic_native(&jit, "", "", 6, 0);
    jit.frames.data[nowhere].mapping = EMIT_NO_MAPPING;
    sample(&jit, 0, synthetic_stack(&jit, EMIT_NO_STACK, nowhere));
    assert_true(has(&jit, options,
                    "mapping 1 [jit]  F---\n"
                    "mapping 2 [unknown]  F---\n"
                    "location 1 M1 0 F1:0:0\n"
                    "location 2 M2 0 F2:0:0\n"
                    "function 1 [jit] :0\n"
                    "function 2 [unknown] :0\n"));
    synthetic_deinit(&jit);
}

/* Frames that were hidden may leave an inlined one without the function that it is part of. */
TEST(inlined_alone)
{
    const struct emit_options options = {.merge = EMIT_MERGE_ALL};
    struct synthetic s = {0};

    setup_one(&s);
    uint32_t caller = synthetic_native(&s, "caller", "/l.so", 0x10, 0), inlined = synthetic_native(&s, "inlined", "/l.so", 0x20, 0);
    s.frames.data[inlined].inlined = true;
    uint32_t root = synthetic_stack(&s, EMIT_NO_STACK, inlined);
    sample(&s, 0, synthetic_stack(&s, synthetic_stack(&s, root, caller), inlined));
    assert_true(has(&s, options, "sample 1 2 1: 1 10000000\n"));
    synthetic_deinit(&s);
}

static struct emit_capture capture_at(uint64_t realtime_ns)
{
    return (struct emit_capture){.name = "a.bin", .hostname = "h", .kernel_release = "6.1", .machine = "x86_64",
                                 .recorder = "pycap 1", .cpu_count = 1, .monotonic_ns = 1000, .realtime_ns = realtime_ns,
                                 .start_ns = 900, .start_realtime_ns = realtime_ns - 100, .duration_ns = 5000};
}

/* The start and length of the recordings, or of what was chosen of them. */
TEST(times)
{
    const struct emit_setting setting = {"frequency", "99"};
    const struct emit_loss losses[] = {{"ring_full", "no room", "", 7}, {"tick_skipped", "", "cpu-clock", 1}};
    struct emit_capture captures[] = {capture_at(1000000), capture_at(900000)};
    struct emit_options options = {.merge = EMIT_MERGE_ALL};
    struct synthetic s = {0};

    setup_one(&s);
    captures[0].settings = &setting;
    captures[0].setting_count = 1;
    captures[0].losses = losses;
    captures[0].loss_count = 2;
    captures[1].name = "b\n.bin";
    s.model.captures = captures;
    s.model.capture_count = 2;
    s.model.filters = "--time 1,2";
    for (uint32_t i = 0; i < 4; i++)
        synthetic_sample(&s, (struct emit_sample){.time_ns = 1200 + 300 * i, .value = 1, .capture = i / 2, .stack = EMIT_NO_STACK});
    assert_true(has(&s, options, "every 0 from 899900 for 10000\n"));
    options.times_chosen = true;
    assert_true(has(&s, options, "every 0 from 900800 for 600\n"));
    assert_true(has(&s, options,
                    "comment converted by pysym (--time 1,2)\n"
                    "comment a.bin: host h, Linux 6.1, x86_64, 1 CPU\n"
                    "comment a.bin: recorded by pycap 1: frequency=99\n"
                    "comment a.bin: lost: 7 ring_full (no room)\n"
                    "comment a.bin: lost: 1 tick_skipped of cpu-clock\n"
                    "comment b_.bin: host h, Linux 6.1, x86_64, 1 CPU\n"
                    "comment b_.bin: recorded by pycap 1\n"));
    captures[0].realtime_ns = captures[1].realtime_ns = 0;
    assert_true(has(&s, options, "every 0 from 0 for 600\n"));
    synthetic_deinit(&s);
}

/* A limit on memory or work ends in an error wherever it is met. */
TEST(limits)
{
    struct synthetic s = {0};
    bool succeeded = false;

    setup_small(&s);
    for (uint64_t most = 0; !succeeded && most < 1 << 20; most += 256) {
        struct limits memory = {.memory_max = most, .work_max = UINT64_MAX}, work = {.memory_max = UINT64_MAX, .work_max = most};
        struct limits *const each[] = {&memory, &work};
        succeeded = true;
        for (int i = 0; i < 2; i++) {
            struct emit_options options = plain;
            options.limits = each[i];
            FILE *out = fopen("/dev/null", "w");
            assert_non_null(out);
            struct error *err = synthetic_emit(&s, emitter_find("pprof"), &options, out);
            assert_true(!err == !each[i]->exceeded);
            assert_true(err || !each[i]->memory_used); /* all is given back */
            succeeded = succeeded && !err;
            error_destroy(err);
            fclose(out);
        }
    }
    assert_true(succeeded);
    synthetic_deinit(&s);
}
