/* SPDX-License-Identifier: Apache-2.0 */
/* The Firefox Profiler's file: rows in time, waits and spans as markers, what hostile names become, and limits. */
#include "tests/unit/emit_fixture.h"

static json_t *parse(const struct synthetic *s, struct emit_options options)
{
    char *text = emit(s, "firefox", options);
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    if (!json)
        print_error("%s\n", error.text);
    assert_non_null(json);
    free(text);
    return json;
}

/* The value at a path of keys and indices: "threads.0.name". Borrowed. */
static json_t *at(json_t *json, const char *path)
{
    char *copy = strdup(path), *rest = copy;

    assert_non_null(copy);
    for (char *word; (word = strsep(&rest, "."));)
        json = json_is_array(json) ? json_array_get(json, (size_t)atoi(word)) : json_object_get(json, word);
    if (!json)
        print_error("no %s\n", path);
    assert_non_null(json);
    free(copy);
    return json;
}

/* Is the value at `path` that JSON? */
static void has(json_t *json, const char *path, const char *expected)
{
    char *found = json_dumps(at(json, path), JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

    assert_string_equal(found, expected);
    free(found);
}

/* The string that a table's cell refers to. */
static void has_string(json_t *json, const char *path, const char *expected)
{
    size_t number = (size_t)json_integer_value(at(json, path));

    assert_string_equal(json_string_value(json_array_get(at(json, "shared.stringArray"), number)), expected);
}

/* ---- time ---- */

static const struct emit_label blocked_labels[] = {{"wait", "blocked"}, {"system call", "read"}};
static const struct emit_label woken_labels[] = {{"wait", "blocked"}, {"system call", "read"}, {"waker", "7/8 <b>"}};
static const struct emit_label queued_labels[] = {{"wait", "run queue"}};
static const struct emit_label fetch_labels[] = {{"asyncio task", "fetch"}};
static const struct emit_label store_labels[] = {{"asyncio task", "store"}};
enum { NO_LABELS, BLOCKED, WOKEN, QUEUED, FETCH, STORE };
static const struct emit_label_set label_sets[] = {
    {0},
    {.labels = blocked_labels, .count = 2, .wait = EMIT_WAIT_BLOCKED, .system_call = "read"},
    {.labels = woken_labels, .count = 3, .wait = EMIT_WAIT_BLOCKED, .system_call = "read"},
    {.labels = queued_labels, .count = 1, .wait = EMIT_WAIT_RUN_QUEUE},
    {.labels = fetch_labels, .count = 1},
    {.labels = store_labels, .count = 1},
};
static const struct emit_rate hundred = {.event = 0, .frequency_hz = 100};
static const struct emit_capture from_second_10 = {.name = "a.bin",
                                                   .hostname = "",
                                                   .kernel_release = "6.1",
                                                   .machine = "x86_64",
                                                   .cpu_model = "",
                                                   .recorder = "",
                                                   .start_ns = 10000000000,
                                                   .start_realtime_ns = UINT64_C(1700000000000000000),
                                                   .duration_ns = 1000000000,
                                                   .rates = &hundred,
                                                   .rate_count = 1};

/* A thread with cpu-clock and off-cpu at one stack each. */
static void setup_time(struct synthetic *s)
{
    setup_one(s);
    synthetic_event(s, "off-cpu", "ns", true);
    s->events.data[1].kind = EVENT_OFF_CPU;
    s->model.label_sets = label_sets;
    s->model.label_set_count = sizeof label_sets / sizeof *label_sets;
    s->model.captures = &from_second_10;
    s->model.capture_count = 1;
    uint32_t run = synthetic_stack(s, EMIT_NO_STACK, synthetic_python(s, "run", "/srv/x.py", 1, 1, 1));
    uint32_t mark = synthetic_mark(s, "[wait: blocked]");
    s->frames.data[mark].wait = "blocked";
    synthetic_stack(s, run, mark);
}

static void add(struct synthetic *s, uint32_t event, uint64_t end_ms, uint64_t ms, uint32_t label_set, enum emit_gil gil)
{
    synthetic_sample(s, (struct emit_sample){.time_ns = 10000000000 + end_ms * 1000000,
                                             .value = ms * 1000000,
                                             .event = event,
                                             .stack = event,
                                             .label_set = label_set,
                                             .gil = gil});
}

/* Rows begin when spans do; where nothing follows, two rows without weight end one. CPU time is in the row behind it. */
TEST(rows)
{
    struct synthetic s = {0};

    setup_time(&s);
    add(&s, 0, 20, 10, NO_LABELS, EMIT_GIL_UNKNOWN);
    add(&s, 0, 30, 10, NO_LABELS, EMIT_GIL_UNKNOWN);  /* at once */
    add(&s, 0, 35, 10, NO_LABELS, EMIT_GIL_UNKNOWN);  /* would overlap */
    add(&s, 0, 100, 10, NO_LABELS, EMIT_GIL_UNKNOWN); /* much later */
    json_t *json = parse(&s, plain);
    has(json, "threads.0.samples.time", "[10,20,30,35,35,90,100,100]");
    has(json, "threads.0.samples.stack", "[0,0,0,0,null,0,0,null]");
    has(json, "threads.0.samples.weight", "[10,10,10,0,0,10,0,0]");
    has(json, "threads.0.samples.threadCPUDelta", "[0,10000000,10000000,5000000,0,5000000,10000000,0]");
    has(json, "threads.0.samples.length", "8");
    has(json, "meta.startTime", "1700000000000");
    has(json, "meta.profilingStartTime", "0");
    has(json, "meta.profilingEndTime", "1000");
    has(json, "meta.interval", "10");
    has(json, "meta.oscpu", "\"Linux 6.1 x86_64\"");
    json_decref(json);
    struct emit_options chosen = plain;
    const struct emit_part window = {.begin_ns = UINT64_C(1700000000250000000), .end_ns = UINT64_C(1700000000500000000)};
    chosen.part = &window;
    json = parse(&s, chosen);
    has(json, "meta.profilingStartTime", "250");
    has(json, "meta.profilingEndTime", "500");
    json_decref(json);
    chosen.part = NULL;
    chosen.times_chosen = true; /* then the range is that of the samples */
    json = parse(&s, chosen);
    assert_null(json_object_get(at(json, "meta"), "profilingEndTime"));
    json_decref(json);
    synthetic_deinit(&s);
}

/* Waits have a track of their own, without CPU time, and markers in the thread's first track. */
TEST(waits)
{
    struct synthetic s = {0};

    setup_time(&s);
    add(&s, 0, 10, 10, NO_LABELS, EMIT_GIL_UNKNOWN);
    add(&s, 1, 300, 290, BLOCKED, EMIT_GIL_UNKNOWN);
    add(&s, 1, 400, 100, WOKEN, EMIT_GIL_UNKNOWN); /* the rest of the same wait */
    s.samples.data[2].continues = true;
    add(&s, 1, 405, 5, QUEUED, EMIT_GIL_UNKNOWN); /* the same, but for a CPU */
    s.samples.data[3].continues = true;
    add(&s, 1, 405, 50, BLOCKED, EMIT_GIL_UNKNOWN); /* of others: no place in time */
    s.samples.data[4].owed = s.samples.data[4].continues = true;
    json_t *json = parse(&s, plain);
    has(json, "threads.1.name", "\"MainThread 101 \302\267 off-cpu\"");
    has(json, "threads.1.samples.time", "[10,300,400,405,405,405]");
    has(json, "threads.1.samples.weight", "[290,100,5,50,0,0]");
    has(json, "threads.1.samples.threadCPUDelta", "[0,0,0,0,0,0]");
    has(json, "threads.1.markers.length", "0");
    has(json, "threads.0.markers.startTime", "[10,400]");
    has(json, "threads.0.markers.endTime", "[400,405]");
    has(json, "threads.0.markers.phase", "[1,1]");
    has(json, "threads.0.markers.category", "[3,3]");
    has_string(json, "threads.0.markers.name.0", "wait: blocked");
    has_string(json, "threads.0.markers.name.1", "wait: run queue");
    has_string(json, "threads.0.markers.data.0.call", "read");
    has_string(json, "threads.0.markers.data.0.waker", "7/8 <b>");
    has(json, "threads.0.markers.data.0.cause.stack", "1");
    assert_null(json_object_get(at(json, "threads.0.markers.data.1"), "waker"));
    has(json, "meta.categories.3.subcategories", "[\"Other\",\"blocked\"]");
    has(json, "shared.frameTable.subcategory", "[0,1]");
    json_decref(json);
    synthetic_deinit(&s);
}

/* A task's span ends with another task, with a sample of none, and where a sample is missing; so does that of the GIL. */
TEST(sampled_spans)
{
    struct synthetic s = {0};

    setup_time(&s);
    add(&s, 0, 20, 10, FETCH, EMIT_GIL_HELD);
    add(&s, 0, 35, 10, FETCH, EMIT_GIL_HELD);
    add(&s, 0, 45, 10, STORE, EMIT_GIL_UNKNOWN); /* says nothing of the GIL */
    add(&s, 0, 55, 10, STORE, EMIT_GIL_HELD);
    add(&s, 0, 65, 10, NO_LABELS, EMIT_GIL_NOT_HELD);
    add(&s, 0, 75, 10, STORE, EMIT_GIL_HELD);
    add(&s, 0, 200, 10, STORE, EMIT_GIL_HELD);
    json_t *json = parse(&s, plain);
    has(json, "threads.0.markers.startTime", "[10,35,10,65,65,190,190]");
    has(json, "threads.0.markers.endTime", "[35,55,55,75,75,200,200]");
    has_string(json, "threads.0.markers.data.0.task", "fetch");
    has_string(json, "threads.0.markers.data.1.task", "store");
    has(json, "threads.0.markers.data.2.type", "\"gil\"");
    has_string(json, "threads.0.markers.name.2", "GIL held");
    json_decref(json);
    synthetic_deinit(&s);
}

/* Captures share one line of time, in whichever order they are given. */
TEST(captures)
{
    struct synthetic s = {0};
    struct emit_capture captures[] = {from_second_10, from_second_10};

    setup_time(&s);
    captures[0].start_realtime_ns += 2000000000;
    s.model.captures = captures;
    s.model.capture_count = 2;
    add(&s, 0, 20, 10, FETCH, EMIT_GIL_UNKNOWN);
    add(&s, 0, 30, 10, FETCH, EMIT_GIL_UNKNOWN);
    s.samples.data[1].capture = 1;
    json_t *json = parse(&s, plain);
    has(json, "threads.0.samples.time", "[20,30,30,2010,2020,2020]");
    has(json, "threads.0.markers.startTime", "[2010,20]");
    has(json, "meta.profilingEndTime", "3000");
    json_decref(json);
    synthetic_deinit(&s);
}

/* ---- the rest ---- */

/* The Profiler takes tracks of one pid for one process. */
TEST(same_pid)
{
    struct synthetic s = {0};

    setup_one(&s);
    synthetic_thread(&s, synthetic_process(&s, 100, "other"), 100, "MainThread");
    s.processes.data[1].free_threaded = true;
    s.processes.data[1].container = "1f2e";
    uint32_t f = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, "f", "a.py", 1, 0, 1));
    sample(&s, 0, f);
    sample(&s, 1, f);
    json_t *json = parse(&s, plain);
    has(json, "threads.0.pid", "\"100\"");
    has(json, "threads.1.pid", "\"100.1\"");
    has(json, "threads.1.processName", "\"other (free-threaded), container 1f2e\"");
    json_decref(json);
    synthetic_deinit(&s);
}

TEST(nothing)
{
    struct synthetic s = {0};

    setup_one(&s);
    json_t *json = parse(&s, plain);
    has(json, "threads.0.name", "\"no samples\"");
    has(json, "meta.initialVisibleThreads", "[0]");
    json_decref(json);
    sample(&s, 0, EMIT_NO_STACK);
    json = parse(&s, plain);
    has_string(json, "shared.funcTable.name.0", "[no frames]");
    json_decref(json);
    synthetic_deinit(&s);
}

TEST(hostile_names)
{
    static const char hostile[] = "</script>\"\\\n\x1b[31m\xe2\x80\xae\xff;x";
    struct synthetic s = {0};

    setup_one(&s);
    s.threads.data[0].name = s.processes.data[0].name = s.processes.data[0].container = hostile;
    uint32_t python = synthetic_stack(&s, EMIT_NO_STACK, synthetic_python(&s, hostile, hostile, 1, 0, 1));
    sample(&s, 0, synthetic_stack(&s, python, synthetic_native(&s, hostile, hostile, 1, 0)));
    json_t *json = parse(&s, plain); /* refuses what is not UTF-8 */
    has_string(json, "shared.funcTable.name.0", "</script>\"\\__[31m_\xef\xbf\xbd:x");
    has_string(json, "shared.sources.filename.0", "</script>\"\\__[31m_\xef\xbf\xbd:x");
    json_decref(json);
    synthetic_deinit(&s);
}

/* More samples than a block of the temporary file holds, in turn of two threads. */
TEST(many)
{
    struct synthetic s = {0};

    setup_small(&s);
    s.samples.count = 0;
    for (uint32_t i = 0; i < 2000; i++)
        sample(&s, i % 2, i % 7 % 6);
    json_t *json = parse(&s, plain), *value;
    for (size_t thread = 0, i; thread < 2; thread++) {
        double weight = 0;
        json_t *samples = at(json, thread ? "threads.1.samples" : "threads.0.samples");
        json_array_foreach(json_object_get(samples, "weight"), i, value) weight += json_number_value(value);
        assert_true(weight == 10000);
    }
    json_decref(json);
    synthetic_deinit(&s);
}

/* Whatever the limits allow, the emitter ends: with a file, or with an error. */
TEST(limits)
{
    struct synthetic s = {0};
    struct emit_options options = plain;
    unsigned failures = 0;

    setup_time(&s);
    for (uint64_t i = 0; i < 20; i++)
        add(&s, i % 2, 100 * (i + 1), 10, i % 6, EMIT_GIL_HELD);
    for (uint64_t most = 0; most < 20000; most += 97) {
        for (int work = 0; work < 2; work++) {
            struct limits limits = {.memory_max = work ? UINT64_MAX : most, .work_max = work ? most : UINT64_MAX};
            char *text = NULL;
            size_t len;
            FILE *out = open_memstream(&text, &len);
            options.limits = &limits;
            struct error *err = synthetic_emit(&s, emitter_find("firefox"), &options, out);
            failures += err != NULL;
            error_destroy(err);
            assert_int_equal(limits.memory_used, 0);
            fclose(out);
            free(text);
        }
    }
    assert_true(failures > 10);
    synthetic_deinit(&s);
}
