/* SPDX-License-Identifier: Apache-2.0 */
/* Which samples each filter lets pass, how often it is asked, and what is said where nothing passes. */
#include "tests/unit/scene_fixture.h"

#include "symbolize/options.h"
#include "symbolize/pass/sample_filter.h"

/* ---- a scene: two processes with a thread each, labels, and a second event ---- */

enum { LABELS_TASK = 1, LABELS_INTERPRETER, MAIN = 1, WORKER };

static void name_thread(struct scene *s, uint32_t thread, const char *name, const char *python_name)
{
    uint32_t kernel = string(s, name), python_id = *python_name ? string(s, python_name) : 0;

    LOAD(s, thread_name, .thread = thread, .name = kernel, .python_name = python_id);
}

static void put_process(struct scene *s, uint32_t id, uint32_t pid, const char *comm, const char *exe, const char *cgroup)
{
    uint32_t module = string(s, "shop.worker");
    uint32_t comm_id = string(s, comm), exe_id = string(s, exe), cgroup_id = *cgroup ? string(s, cgroup) : 0;

    LOAD(s, process, .id = id, .tgid = pid, .comm = comm_id, .exe = exe_id, .cgroup = cgroup_id,
         .program_kind = id == WORKER ? TRACE_PROGRAM_MODULE : TRACE_PROGRAM_UNRECORDED, .program = module);
    LOAD(s, thread, .id = id, .process = id, .tid = pid, .name = comm_id);
}

static void put_label(struct scene *s, uint32_t id, enum trace_label label, const char *value)
{
    uint32_t key = string(s, trace_label_key(label));
    const uint64_t pair[] = {key, string(s, value)};

    LOAD(s, label_set, .id = id, .pairs = {.values = pair, .count = 1});
}

#define OUTER     "ba9876543210ba9876543210ba9876543210ba9876543210ba9876543210ba98"
#define CONTAINER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void set_scene(struct scene *s)
{
    setup(s, NULL);
    event(s);
    uint32_t name = string(s, "page-faults"), unit = string(s, "faults");
    LOAD(s, event, .id = 2, .name = name, .unit = unit, .period = 1);
    put_process(s, MAIN, 100, "gunicorn", "/usr/bin/python3.11", "/system.slice/web.service");
    put_process(s, WORKER, 200, "celery", "/opt/venv/bin/python", "/system.slice/docker-" OUTER ".scope/docker/" CONTAINER);
    name_thread(s, WORKER, "pool-3", "Consumer");
    put_label(s, LABELS_TASK, TRACE_LABEL_task, "fetch page");
    put_label(s, LABELS_INTERPRETER, TRACE_LABEL_interpreter, "2");
}

/* Options as if they stood on the command line; a text, so that their setters are tested too. */
static void set_options(struct options *o, int count, const char *const *words)
{
    char *argv[16] = {(char *)"pysym", (char *)"t.bin", (char *)"-f", (char *)"folded"};

    for (int i = 0; i < count; i++)
        argv[4 + i] = (char *)words[i];
    OK(options_parse(4 + count, argv, o));
}
#define OPTIONS(o, ...) \
    set_options(o, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__})

static bool passes_event(struct scene *s, struct sample_filter *f, uint32_t event_id, struct trace_sample sample)
{
    bool yes;

    if (!sample.value)
        sample.value = 7;
    OK(sample_filter_sample(f, &s->epoch, event_id, &sample, &yes));
    return yes;
}

static bool passes(struct scene *s, struct sample_filter *f, struct trace_sample sample)
{
    return passes_event(s, f, 1, sample);
}

/* Begins a file at 1000 ns; its clock says that this was 1970-01-02 14:00:00 UTC. */
static void begin_file(struct sample_filter *f, bool clock)
{
    const uint64_t realtime_ns = UINT64_C(136800000000000);

    sample_filter_begin_file(f, 0);
    sample_filter_record(f, &(struct trace_record){.type = TRACE_epoch, .epoch = {.time_ns = 1000}});
    if (clock)
        sample_filter_record(f, &(struct trace_record){.type = TRACE_clock,
                                                       .clock = {.monotonic_ns = 1500, .realtime_ns = realtime_ns + 500}});
}

static void says(struct error *err, enum error_code code, const char *text)
{
    assert_non_null(err);
    assert_string_equal(error_text(err), text);
    assert_int_equal(err->code, code);
    error_destroy(err);
}

/* ---- each filter ---- */

/* Which of three samples pass: of the first process, of the second one, and of the second event and both labels' turn. */
static const char *chosen(struct scene *s, const char *option, const char *argument)
{
    static char out[5];
    struct options o;
    struct sample_filter f;

    OPTIONS(&o, option, argument);
    OK(sample_filter_init(&f, &o.filters));
    assert_int_equal(f.enabled.count, 1);
    begin_file(&f, false);
    bool yes[] = {passes(s, &f, (struct trace_sample){.thread = MAIN, .label_set = LABELS_TASK}),
                  passes(s, &f, (struct trace_sample){.thread = WORKER, .label_set = LABELS_INTERPRETER, .cpu = 5}),
                  passes_event(s, &f, 2, (struct trace_sample){.thread = MAIN, .cpu = 7})};
    for (int i = 0; i < 3; i++)
        out[i] = yes[i] ? "123"[i] : '-';
    sample_filter_deinit(&f);
    options_deinit(&o);
    return out;
}

TEST(each_filter)
{
    static const char *const cases[][3] = {
        {"--pid", "100", "1-3"},
        {"--pid", "200,300", "-2-"},
        {"--tid", "200", "-2-"},
        {"--comm", "^guni", "1-3"},
        {"--comm", "e", "-2-"},
        {"--comm", "corn|lery", "123"},
        {"--comm", "^-m shop", "-2-"}, /* by what it runs, */
        {"--comm", "celery", "-2-"},   /* and by the kernel's name, */
        {"--comm", "-m shop.worker \"celery\"", "-2-"}, /* and as messages have both */
        {"--exe", "/venv/", "-2-"},
        {"--cgroup", "/system.slice/web.service", "1-3"},
        {"--cgroup", "/system.slice/", "123"},
        {"--cgroup", "/system", "---"}, /* a cgroup's name is whole */
        {"--cgroup", "/sys/fs/cgroup/system.slice/web.service", "1-3"},
        {"--cgroup", "/sys/fs/cgroup/unified/system.slice", "123"},
        {"--cgroup", "/sys/fs/cgroup", "123"},
        {"--container", "0123456789ab", "-2-"},
        {"--container", CONTAINER, "-2-"},
        {"--container", "docker://" CONTAINER, "-2-"},
        {"--container", OUTER, "-2-"}, /* it is in the other */
        {"--container", "123", "---"},
        {"--thread", "Consumer", "-2-"}, /* by Python's name, */
        {"--thread", "pool", "-2-"},     /* and by the kernel's */
        {"--thread", "gunicorn", "1-3"},
        {"--event", "page-faults", "--3"},
        {"--event", "page", "---"},
        {"--task", "fetch", "1--"},
        {"--subinterpreter", "2", "-2-"},
        {"--subinterpreter", "0", "1-3"}, /* without a label: the main one */
        {"--subinterpreter", "0,2", "123"},
        {"--cpu", "0", "1--"},
        {"--cpu", "5-7", "-23"},
        {"--cpu", "0,7", "1-3"},
    };
    struct scene s;

    set_scene(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(chosen(&s, cases[i][0], cases[i][1]), cases[i][2]);
    teardown(&s);
}

TEST(time_and_gil)
{
    const uint32_t held = TRACE_SAMPLE_GIL_KNOWN | TRACE_SAMPLE_GIL;
    struct options o;
    struct sample_filter f;
    struct scene s;

    set_scene(&s);
    OPTIONS(&o, "--time", "0.00000001,0.00000002", "--gil");
    OK(sample_filter_init(&f, &o.filters));
    begin_file(&f, false);
    assert_false(passes(&s, &f, (struct trace_sample){.thread = 1, .time_ns = 1009, .flags = held}));
    assert_true(passes(&s, &f, (struct trace_sample){.thread = 1, .time_ns = 1010, .flags = held}));
    assert_true(passes(&s, &f, (struct trace_sample){.thread = 1, .time_ns = 1019, .flags = held}));
    assert_false(passes(&s, &f, (struct trace_sample){.thread = 1, .time_ns = 1020, .flags = held}));
    assert_false(passes(&s, &f, (struct trace_sample){.thread = 1, .time_ns = 1015, .flags = TRACE_SAMPLE_GIL_KNOWN}));
    assert_false(passes(&s, &f, (struct trace_sample){.thread = 1, .time_ns = 1015}));
    assert_null(sample_filter_check(&f));
    sample_filter_deinit(&f);

    /* A trace that never says who held the GIL. */
    OK(sample_filter_init(&f, &o.filters));
    begin_file(&f, false);
    assert_null(sample_filter_check(&f));
    assert_false(passes(&s, &f, (struct trace_sample){.thread = 1, .time_ns = 1015}));
    says(sample_filter_check(&f), ERROR_UNSUPPORTED, "--gil: the trace does not say which thread held the GIL");
    sample_filter_deinit(&f);
    options_deinit(&o);

    /* A time of the day where the file has no clock. */
    OPTIONS(&o, "--time", "14:00,");
    OK(sample_filter_init(&f, &o.filters));
    begin_file(&f, false);
    assert_false(passes(&s, &f, (struct trace_sample){.thread = 1, .time_ns = 1015}));
    says(sample_filter_check(&f), ERROR_UNSUPPORTED, "--time: the trace does not say what time it was");
    begin_file(&f, true);
    assert_true(passes(&s, &f, (struct trace_sample){.thread = 1, .time_ns = 1015}));
    sample_filter_deinit(&f);
    options_deinit(&o);
    teardown(&s);
}

/* What a first pass found is applied by file. */
TEST(scouted)
{
    const struct file_scouted files[] = {{.duration_ns = 1000, .first_ns = 10, .last_ns = 20, .matched = true},
                                         {.duration_ns = 2000}};
    const struct {
        const char *option, *argument;
        uint64_t from, last[2]; /* the first and last time that pass in each file; last 0: none does */
    } cases[] = {{"--time", "50%,100%", 500, {1000, 2000}}, {"--time", ",50%", 0, {499, 999}},
                 {"--around", "f", 10, {20, 0}}};
    struct scene s;

    set_scene(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        struct sample_filter f;
        OPTIONS(&o, cases[i].option, cases[i].argument);
        OK(sample_filter_init(&f, &o.filters));
        f.scouted = files;
        for (uint32_t file = 0; file < 2; file++) {
            uint64_t count = 0, first = UINT64_MAX, last = 0;
            sample_filter_begin_file(&f, file);
            for (uint64_t at = 0; at <= files[file].duration_ns; at++) {
                if (!passes(&s, &f, (struct trace_sample){.thread = 1, .time_ns = at}))
                    continue;
                first = at < first ? at : first;
                last = at;
                count++;
            }
            assert_int_equal(last, cases[i].last[file]);
            if (last) {
                assert_int_equal(first, (file && cases[i].from == 500) ? 1000 : cases[i].from);
                assert_int_equal(count, last - first + 1);
            }
        }
        sample_filter_deinit(&f);
        options_deinit(&o);
    }
    teardown(&s);
}

/* ---- how often they are asked ---- */

TEST(answers_are_kept)
{
    struct scene s;

    set_scene(&s);
    for (int by_thread = 0; by_thread < 2; by_thread++) {
        struct options o;
        struct sample_filter f;
        OPTIONS(&o, by_thread ? "--tid" : "--pid", "200,300");
        OK(sample_filter_init(&f, &o.filters));
        for (int i = 0; i < 3; i++) {
            assert_false(passes(&s, &f, (struct trace_sample){.thread = 1}));
            assert_true(passes(&s, &f, (struct trace_sample){.thread = 2}));
        }
        /* Asked once for each of the two; again when a name changes, and in the next epoch. */
        assert_int_equal(f.enabled.data[0].known_count, 2);
        for (uint32_t id = 1; id <= 2; id++) {
            struct trace_record rec = {.type = by_thread ? TRACE_thread_name : TRACE_process_name};
            if (by_thread)
                rec.thread_name.thread = id;
            else
                rec.process_name.process = id;
            sample_filter_record(&f, &rec);
            assert_false(f.answers[by_thread ? FILTER_THREAD : FILTER_PROCESS].data[id].asked);
            assert_int_equal(f.answers[by_thread ? FILTER_THREAD : FILTER_PROCESS].data[3 - id].asked, id == 1);
        }
        assert_true(passes(&s, &f, (struct trace_sample){.thread = 2}));
        assert_int_equal(f.enabled.data[0].known_count, 3);
        sample_filter_end_epoch(&f);
        assert_false(passes(&s, &f, (struct trace_sample){.thread = 1}));
        assert_int_equal(f.enabled.data[0].known_count, 4);
        assert_null(sample_filter_check(&f));
        sample_filter_deinit(&f);
        options_deinit(&o);
    }
    teardown(&s);
}

/* ---- what is said where nothing passes ---- */

TEST(nothing_passes)
{
    static const struct {
        const char *words[4], *text;
    } cases[] = {
        {{"--pid", "1"}, "no sample passes --pid 1; the trace has processes 200 -m shop.worker \"celery\", 100 gunicorn"},
        {{"--comm", "a b"}, "no sample passes --comm 'a b'; the trace has commands -m shop.worker \"celery\", gunicorn"},
        {{"--tid", "1"}, "no sample passes --tid 1; the trace has threads 200 Consumer, 100 gunicorn"},
        {{"--task", "x"}, "no sample passes --task x; the trace has asyncio tasks fetch page"},
        {{"--container", "f"}, "no sample passes --container f; the trace has containers 0123456789ab"},
        {{"--cpu", "9"}, "no sample passes --cpu 9; the trace has CPUs 3, 0"},
        {{"--time", "5,"},
         "no sample passes --time 5,; the samples lie between 0.00 s and 2.00 s (1970-01-02 14:00:00.00 to "
         "1970-01-02 14:00:02.00 UTC)"},
        {{"--gil"}, "no sample passes --gil"},
        /* The first that lets nothing pass by itself; */
        {{"--pid", "100", "--comm", "x"}, "no sample passes --comm x; the trace has commands -m shop.worker \"celery\", gunicorn"},
        {{"--comm", "x", "--pid", "1"}, "no sample passes --pid 1; the trace has processes 200 -m shop.worker \"celery\", 100 gunicorn"},
        /* else the first behind which nothing is left. */
        {{"--comm", "celery", "--pid", "100"},
         "no sample passes --comm celery of those that pass --pid 100; they have commands gunicorn"},
    };
    struct scene s;

    set_scene(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int count = 0;
        struct options o;
        struct sample_filter f;
        while (count < 4 && cases[i].words[count])
            count++;
        set_options(&o, count, cases[i].words);
        OK(sample_filter_init(&f, &o.filters));
        begin_file(&f, true);
        const uint32_t known = TRACE_SAMPLE_GIL_KNOWN;
        assert_false(passes(&s, &f, (struct trace_sample){.thread = MAIN, .time_ns = 1000, .value = 10, .flags = known,
                                                          .label_set = LABELS_TASK}));
        assert_false(passes(&s, &f, (struct trace_sample){.thread = WORKER, .time_ns = 2000001000, .value = 20,
                                                          .flags = known, .cpu = 3}));
        assert_null(sample_filter_check(&f));
        says(sample_filter_nothing(&f), ERROR_NOT_FOUND, cases[i].text);
        sample_filter_deinit(&f);
        options_deinit(&o);
    }
    teardown(&s);
}

TEST(no_samples)
{
    struct options o;
    struct sample_filter f;

    OPTIONS(&o, "--pid", "1");
    OK(sample_filter_init(&f, &o.filters));
    says(sample_filter_nothing(&f), ERROR_NOT_FOUND, "there is nothing to choose from: the trace has no samples");
    sample_filter_deinit(&f);
    options_deinit(&o);
}

/* A list holds the ten heaviest, and says how many more there are; its memory has a bound. */
TEST(inventory)
{
    struct inventory v = {0};
    struct buf text = {0};
    char name[16];

    for (uint32_t i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "n%u", i);
        inventory_add(&v, inventory_value(&v, name), i < 6 ? 100 + i : 50, i == 3);
    }
    assert_int_equal(inventory_put(&v, false, &text), 12);
    assert_string_equal(buf_cstr(&text), "n5, n4, n3, n2, n1, n0, n6, n7, n8, n9 and 2 more");
    buf_clear(&text);
    assert_int_equal(inventory_put(&v, true, &text), 1);
    assert_string_equal(buf_cstr(&text), "n3");
    for (uint32_t i = 0; i < INVENTORY_VALUES_MAX + 100; i++) {
        snprintf(name, sizeof name, "m%u", i);
        inventory_add(&v, inventory_value(&v, name), 1, false);
    }
    assert_int_equal(v.weights.count, INVENTORY_VALUES_MAX);
    buf_clear(&text);
    assert_int_equal(inventory_put(&v, false, &text), INVENTORY_VALUES_MAX);
    assert_string_equal(buf_cstr(&text), "n5, n4, n3, n2, n1, n0, n6, n7, n8, n9 and others");
    buf_deinit(&text);
    inventory_deinit(&v);
}

/* ---- ranges of time ---- */

#define S INT64_C(1000000000)

TEST(time_range)
{
    /* The file began at 1970-01-02 14:00:00 UTC and lasts 100 s. */
    const struct file_times file = {.start_ns = 5, .has_clock = true, .start_realtime_ns = (uint64_t)(136800 * S),
                                    .duration_ns = (uint64_t)(100 * S)};
    static const struct {
        const char *text;
        int64_t from_ns, to_ns; /* to -1: no end */
    } good[] = {
        {"10,20", 10 * S, 20 * S},
        {",0.5", 0, S / 2},
        {"1.5,", S * 3 / 2, -1},
        {",", 0, -1},
        {"10%,50%", 10 * S, 50 * S},
        {"99.5%,100%", S * 199 / 2, -1},
        {"14:00:10,14:01", 10 * S, 60 * S},
        {"13:00,14:00:00.25", 0, S / 4},
        {"15:00+01:00,16:00:05+0200", 0, 5 * S},
        {"08:00:01-06:00,14:00:02Z", S, 2 * S},
        {"1970-01-02T14:00:30,1970-01-03 14:00:00", 30 * S, 86400 * S},
        {"1970-01-01T00:00,", 0, -1},
        {"01:00,", 11 * 3600 * S, -1}, /* past midnight */
        {"03:00,", 0, -1},             /* of this day: less than 12 hours before */
        {"23:59:59,00:00:01", 35999 * S, 36001 * S},
        {"22:00,03:00", 8 * 3600 * S, 13 * 3600 * S},
        {"03:30,14:00:01", 0, S},
        {"14:00:10,14:00:05", 10 * S, 5 * S}, /* nothing: the wrong way round */
        {"10,14:00:20", 10 * S, 20 * S},
    };
    static const char *const bad[] = {"",        "5",          "5,2",        "5,5",       "x,",     "1,2,3",
                                      "-1,",     "101%,",      "50%,40%",    "24:00,",    "14:60,", "14,14:0",
                                      "1:00,",   "1970-13-01T00:00,", "1970-01-01,x", "14:00x,", "inf,",
                                      "14:00+1," };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct time_range range;
        uint64_t from_ns, to_ns;
        if (!time_range_parse(good[i].text, &range))
            fail_msg("%s is refused", good[i].text);
        assert_true(time_range_in_file(&range, &file, &from_ns, &to_ns));
        if (from_ns != (uint64_t)good[i].from_ns || to_ns != (uint64_t)good[i].to_ns)
            fail_msg("%s: %llu to %llu", good[i].text, (unsigned long long)from_ns, (unsigned long long)to_ns);
    }
    /* Begun at 00:05, the midnight was before. */
    const struct file_times early = {.has_clock = true, .start_realtime_ns = (uint64_t)(86700 * S)};
    struct time_range around;
    uint64_t from_ns, to_ns;
    assert_true(time_range_parse("23:50,00:10", &around) && time_range_in_file(&around, &early, &from_ns, &to_ns));
    assert_true(from_ns == 0 && to_ns == (uint64_t)(300 * S));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct time_range range;
        if (time_range_parse(bad[i], &range))
            fail_msg("%s is accepted", bad[i]);
    }
}
