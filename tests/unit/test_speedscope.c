/* SPDX-License-Identifier: Apache-2.0 */
/* Which profiles speedscope's file has, by --merge, and how samples of several threads become one profile. */
#include "tests/unit/emit_fixture.h"

static json_t *profile_of(json_t *json, size_t i)
{
    return json_array_get(json_object_get(json, "profiles"), i);
}

static size_t profile_count(json_t *json)
{
    return json_array_size(json_object_get(json, "profiles"));
}

static json_int_t weight_of(json_t *profile)
{
    json_int_t sum = 0;
    json_t *weight;
    size_t i;

    json_array_foreach(json_object_get(profile, "weights"), i, weight)
        sum += json_integer_value(weight);
    assert_int_equal(sum, json_integer_value(json_object_get(profile, "endValue")));
    assert_int_equal(json_array_size(json_object_get(profile, "samples")), i);
    return sum;
}

static bool is_overview(json_t *profile)
{
    return json_is_true(json_object_get(profile, "overview"));
}

/* Over the profiles that add up; *overviews counts the others. */
static json_int_t sum_of(json_t *json, size_t *overviews)
{
    json_int_t sum = 0;

    *overviews = 0;
    for (size_t i = 0; i < profile_count(json); i++) {
        if (is_overview(profile_of(json, i)))
            ++*overviews;
        else
            sum += weight_of(profile_of(json, i));
    }
    return sum;
}

static void expect_names(json_t *json, const char *const *names, size_t count)
{
    assert_int_equal(profile_count(json), count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(json_string_value(json_object_get(profile_of(json, i), "name")), names[i]);
}

/* A stack of one Python function for each letter. */
static uint32_t stack_of(struct synthetic *s, const char *letters)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    uint32_t stack = EMIT_NO_STACK;

    for (; *letters; letters++)
        stack = synthetic_stack(s, stack, synthetic_python(s, names[*letters - 'a'], "x.py", 1, 0, 1));
    return stack;
}

static void add(struct synthetic *s, uint32_t thread, uint32_t event, uint32_t stack, uint64_t value)
{
    sample(s, thread, stack);
    s->samples.data[s->samples.count - 1].event = event;
    s->samples.data[s->samples.count - 1].value = value;
}

/* Threads of three processes; one process's name is known only as the kernel's. */
static void setup_processes(struct synthetic *s)
{
    uint32_t master = synthetic_process(s, 20, "gunicorn"), worker = synthetic_process(s, 21, "gunicorn");
    uint32_t module = synthetic_process(s, 9, "python3");

    s->processes.data[module].name = "-m http.server";
    synthetic_event(s, "cpu-clock", "ns", true);
    synthetic_thread(s, master, 20, "MainThread");
    synthetic_thread(s, worker, 21, "MainThread");
    synthetic_thread(s, worker, 22, "pool_0");
    synthetic_thread(s, module, 9, "");
    uint32_t a = stack_of(s, "a"), ab = stack_of(s, "ab");
    add(s, 0, 0, a, 1000000000);
    add(s, 1, 0, ab, 2000000000);
    add(s, 2, 0, a, 4000000000);
    add(s, 1, 0, ab, 500000000);
    add(s, 3, 0, ab, 4800000000);
}

TEST(merge)
{
    static const char *const processes[] = {"gunicorn 21", "-m http.server 9", "gunicorn 20"};
    static const char *const all[] = {"all threads (12.3 s)"};
    struct synthetic s = {0};
    struct emit_options o = plain;
    size_t overviews;

    setup_processes(&s);
    o.merge = EMIT_MERGE_PROCESS;
    json_t *json = parse_speedscope(&s, o);
    expect_names(json, processes, 3);
    assert_int_equal(weight_of(profile_of(json, 0)), 6500000000);
    assert_int_equal(sum_of(json, &overviews), 12300000000);
    assert_int_equal(overviews, 0);
    json_decref(json);

    o.merge = EMIT_MERGE_ALL;
    json = parse_speedscope(&s, o);
    expect_names(json, all, 1);
    assert_int_equal(sum_of(json, &overviews), 12300000000); /* it is all that the file has, so it counts */
    json_decref(json);

    /* --threads asks for threads as they always were. */
    o = plain;
    o.threads = true;
    char *by_option = emit(&s, "speedscope", o), *by_merge = emit(&s, "speedscope", by_thread);
    assert_string_equal(by_option, by_merge);
    assert_non_null(strstr(by_merge, "\"activeProfileIndex\":3,"));
    free(by_option);
    free(by_merge);
    synthetic_deinit(&s);
}

/* A single thread is not shown twice. */
TEST(one_thread)
{
    static const char *const names[] = {"python3 100 \xc2\xb7 MainThread 101"};
    struct synthetic s = {0};

    setup_one(&s);
    sample(&s, 0, stack_of(&s, "a"));
    json_t *json = parse_speedscope(&s, plain);
    expect_names(json, names, 1);
    assert_false(is_overview(profile_of(json, 0)));
    json_decref(json);
    synthetic_deinit(&s);
}

/* `count` threads of the weight, behind one of a second. */
static void setup_many(struct synthetic *s, uint32_t count, uint64_t weight)
{
    setup_one(s);
    uint32_t a = stack_of(s, "a");
    add(s, 0, 0, a, 1000000000);
    for (uint32_t i = 0; i < count; i++)
        add(s, synthetic_thread(s, 0, 200 + i, "w"), 0, a, weight);
}

/* Threads are joined where they are many, or small. */
TEST(other_threads)
{
    static const struct {
        uint32_t count;
        uint64_t weight;
        size_t profiles;
        const char *last;
    } cases[] = {
        {49, 10000000, 51, "python3 100 \xc2\xb7 w 248"}, {50, 10000000, 52, "python3 100 \xc2\xb7 w 249"},
        {51, 10000000, 52, "2 other threads"},            {500, 2000000, 52, "451 other threads"},
        {87, 100000, 3, "87 other threads"},              {1, 100000, 3, "python3 100 \xc2\xb7 w 200"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct synthetic s = {0};
        size_t overviews;
        setup_many(&s, cases[i].count, cases[i].weight);
        json_t *json = parse_speedscope(&s, plain);
        assert_int_equal(profile_count(json), cases[i].profiles);
        json_t *last = profile_of(json, cases[i].profiles - 1);
        assert_string_equal(json_string_value(json_object_get(last, "name")), cases[i].last);
        assert_int_equal(sum_of(json, &overviews), 1000000000 + cases[i].count * cases[i].weight);
        assert_int_equal(overviews, 1);
        json_decref(json);
        synthetic_deinit(&s);
    }
}

/* Callees of a function stand by weight, its own weight behind them; stacks of all threads are added up. */
TEST(order_of_a_sum)
{
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_one(&s);
    synthetic_thread(&s, 0, 102, "w");
    uint32_t a = stack_of(&s, "a"), b = stack_of(&s, "b"), ab = stack_of(&s, "ab"), ac = stack_of(&s, "ac");
    uint32_t acd = stack_of(&s, "acd");
    add(&s, 0, 0, b, 9);
    add(&s, 0, 0, a, 3);
    add(&s, 1, 0, ab, 4);
    add(&s, 0, 0, acd, 2);
    add(&s, 1, 0, ac, 3);
    add(&s, 1, 0, acd, 1);
    add(&s, 1, 0, EMIT_NO_STACK, 1);
    add(&s, 0, 0, ab, 0);
    o.merge = EMIT_MERGE_ALL;
    /* Frames are numbered in the order of the model's stacks: a 0, b 1, c 2, d 3, [no frames] 4. */
    assert_true(contains(&s, "speedscope", o,
                         "\"samples\":[[0,2,3],[0,2],[0,1],[0],[1],[4]],\n\"weights\":[3,3,4,3,9,1]}"));
    synthetic_deinit(&s);
}

/* Each value of a label has a profile, which adds nothing to the sum. */
TEST(labels)
{
    static const struct emit_label labels[] = {
        {"interpreter", "1"}, {"asyncio task", "fetch"}, {"asyncio task", "a;b\n"}, {"interpreter", "1"}};
    const struct emit_label_set sets[] = {{0}, {&labels[0], 2}, {&labels[2], 2}};
    static const char *const names[] = {"python3 100 \xc2\xb7 MainThread 101", "interpreter 1", "GIL not held",
                                        "asyncio task a:b_", "GIL held", "asyncio task fetch"};
    static const json_int_t weights[] = {1500, 600, 500, 400, 300, 200};
    struct synthetic s = {0};
    struct emit_options o = plain;
    size_t overviews;

    setup_one(&s);
    s.model.label_sets = sets;
    s.model.label_set_count = 3;
    uint32_t a = stack_of(&s, "a"), ab = stack_of(&s, "ab");
    add(&s, 0, 0, a, 100);
    s.samples.data[0].label_set = 1;
    add(&s, 0, 0, ab, 400);
    s.samples.data[1].label_set = 2;
    s.samples.data[1].gil = EMIT_GIL_NOT_HELD;
    add(&s, 0, 0, ab, 100);
    s.samples.data[2].label_set = 1;
    s.samples.data[2].gil = EMIT_GIL_NOT_HELD;
    add(&s, 0, 0, a, 300);
    s.samples.data[3].gil = EMIT_GIL_HELD;
    add(&s, 0, 0, EMIT_NO_STACK, 600);
    json_t *json = parse_speedscope(&s, o);
    assert_int_equal(profile_count(json), 1);
    json_decref(json);
    o.labels = true;
    json = parse_speedscope(&s, o);
    expect_names(json, names, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(weight_of(profile_of(json, i)), weights[i]);
    assert_int_equal(sum_of(json, &overviews), 1500);
    assert_int_equal(overviews, 5);
    json_decref(json);
    synthetic_deinit(&s);
}

/* Of many values the fifty heaviest are shown. */
TEST(many_labels)
{
    struct emit_label labels[60];
    struct emit_label_set sets[61] = {{0}};
    char values[60][8];
    struct synthetic s = {0};
    struct emit_options o = plain;

    setup_one(&s);
    uint32_t a = stack_of(&s, "a");
    for (uint32_t i = 0; i < 60; i++) {
        snprintf(values[i], sizeof values[i], "%u", i);
        labels[i] = (struct emit_label){"task", values[i]};
        sets[1 + i] = (struct emit_label_set){&labels[i], 1};
        add(&s, 0, 0, a, 100 + i);
        s.samples.data[i].label_set = 1 + i;
    }
    s.model.label_sets = sets;
    s.model.label_set_count = 61;
    o.labels = true;
    json_t *json = parse_speedscope(&s, o);
    assert_int_equal(profile_count(json), 51);
    assert_int_equal(weight_of(profile_of(json, 50)), 110);
    assert_string_equal(json_string_value(json_object_get(profile_of(json, 50), "name")), "task 10");
    json_decref(json);
    synthetic_deinit(&s);
}

/* With filters the names of the file and of its first profile say how much is shown. */
TEST(filters)
{
    static const struct emit_total totals[] = {{.all_value = 24600000000, .shown_value = 12300000000}};
    struct synthetic s = {0};

    setup_processes(&s);
    s.model.totals = totals;
    s.model.filters = "--comm 'a b'";
    json_t *json = parse_speedscope(&s, plain);
    assert_string_equal(json_string_value(json_object_get(json, "name")),
                        "test: 12.30 s of 24.60 s shown (--comm 'a b')");
    assert_string_equal(json_string_value(json_object_get(profile_of(json, 0), "name")),
                        "all threads (12.30 s of 24.60 s shown)");
    json_decref(json);
    synthetic_deinit(&s);
}

/* What is kept of all stacks counts in the limits: an output may have many parts. */
TEST(memory_of_stacks)
{
    enum { STACKS = 100000 };
    struct limits limits = {.memory_max = UINT64_MAX, .work_max = UINT64_MAX};
    const struct emitter *emitter = emitter_find("speedscope");
    struct emit_options options = plain;
    struct synthetic s = {0};
    void *emitting = NULL;

    setup_one(&s);
    uint32_t frame = synthetic_python(&s, "f", "f.py", 1, 1, 1), stack = EMIT_NO_STACK;
    for (int i = 0; i < STACKS; i++)
        stack = synthetic_stack(&s, EMIT_NO_STACK, frame);
    options.limits = &limits;
    OK(emitter->begin(&s.model, &options, stdout, &emitting));
    OK(emitter->sample(emitting, &(struct emit_sample){.value = 1, .stack = stack}));
    assert_true(limits.memory_used >= STACKS * sizeof(bool));
    emitter->destroy(emitting);
    assert_int_equal(limits.memory_used, 0);
    /* All is given back, also of a profile that was written: the windows of a long recording count one after the other. */
    synthetic_demo(&s, 500);
    FILE *out = fopen("/dev/null", "w");
    OK(synthetic_emit(&s, emitter, &options, out));
    assert_int_equal(fclose(out), 0);
    assert_int_equal(limits.memory_used, 0);
    synthetic_deinit(&s);
}
