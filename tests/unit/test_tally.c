/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to a run's table of counts. */
#include "tests/unit/test.h"
#include "tests/unit/emit_fixture.h"

#include <math.h>
#include <string.h>

#include "formats/compare/tally.h"
#include "formats/compare/tally_tree.h"

/* A recording of 10 ms samples, and the set that it is counted into. */
struct scene {
    struct synthetic s;
    struct run_set set;
};

static const struct emit_setting settings[] = {
    {"backend", "bpf"}, {"unwind", "dwarf"}, {"scope", "command"}, {"note.work", "2e4"}, {"note.jobs", "7"}, {"command.wall_ns", "123"}};
static const struct emit_rate rates[] = {{.event = 0, .frequency_hz = 99, .period = 10000000, .samples = 30, .busy_ticks = 100, .own_ticks = 30}};
static const struct emit_loss losses[] = {{.name = "ring_full", .event = "cpu-clock", .count = 3, .is_sample = true},
                                          {.name = "process_gone", .event = "", .count = 2, .is_sample = true},
                                          {.name = "tick_skipped", .event = "cycles", .count = 50, .is_sample = true},
                                          {.name = "tick_skipped", .event = "cpu-clock", .count = 10, .is_sample = true, .is_everywhere = true},
                                          {.name = "string_cut", .event = "", .count = 9}};
static const struct emit_capture captures[] = {
    {.name = "a.bin", .hostname = "h", .kernel_release = "6.1.0", .machine = "x86_64", .cpu_model = "cpu", .recorder = "pycap", .cpu_count = 2,
     .start_realtime_ns = 11, .duration_ns = 12, .settings = settings, .setting_count = 6, .rates = rates, .rate_count = 1,
     .losses = losses, .loss_count = 5},
    {.name = "b.bin", .hostname = "", .kernel_release = "", .machine = "", .cpu_model = "", .recorder = ""},
    {.name = "c.bin", .hostname = "", .kernel_release = "", .machine = "", .cpu_model = "", .recorder = ""}};

static void setup(struct scene *t)
{
    *t = (struct scene){0};
    setup_one(&t->s);
    t->s.processes.data[0].python_version = 0x030c01f0;
    assert_true(run_set_init(&t->set, NULL));
}

static void teardown(struct scene *t)
{
    run_set_deinit(&t->set);
    synthetic_deinit(&t->s);
}

static void run_tally(struct scene *t, uint32_t capture_count)
{
    static const struct emit_label_set no_labels = {0};
    void *state;

    t->s.model.label_sets = &no_labels;
    t->s.model.label_set_count = 1;
    t->s.model.captures = captures;
    t->s.model.capture_count = capture_count;
    t->s.model.filters = "--pid 1";
    OK(tally_create(&t->s.model, &t->set, &state));
    for (size_t i = 0; i < t->s.samples.count; i++)
        OK(tally_emitter.sample(state, &t->s.samples.data[i]));
    OK(tally_emitter.end(state));
    tally_emitter.destroy(state);
}

static void many(struct scene *t, uint32_t stack, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sample(&t->s, 0, stack);
}

static uint32_t python(struct scene *t, uint32_t caller, const char *function, uint32_t line)
{
    return synthetic_stack(&t->s, caller, synthetic_python(&t->s, function, "/srv/x.py", line, 1, 1));
}

static const struct run_event *event_of(const struct scene *t, uint32_t run)
{
    const struct run_event *e = run_event_find(&t->set, &t->set.runs.data[run], "cpu-clock");

    assert_non_null(e);
    return e;
}

static const char *text(const struct scene *t, uint32_t number)
{
    return run_set_text_get(&t->set, number);
}

/* "a;b;c" of a node. */
static const char *path_of(const struct scene *t, uint32_t node)
{
    static char out[200];
    char before[200];

    out[0] = 0;
    for (; node != RUN_SET_ROOT; node = t->set.nodes.data[node].parent) {
        strcpy(before, out);
        snprintf(out, sizeof out, "%s%s%s", text(t, t->set.functions.data[t->set.nodes.data[node].function].name), *before ? ";" : "", before);
    }
    return out;
}

static const struct run_cell *node_cell(const struct scene *t, uint32_t run, const char *path)
{
    const struct run_event *e = event_of(t, run);

    for (size_t i = 0; i < e->nodes.count; i++) {
        if (!strcmp(path_of(t, e->nodes.data[i].id), path))
            return &e->nodes.data[i];
    }
    return NULL;
}

static const struct run_cell *function_cell(const struct scene *t, uint32_t run, const char *name)
{
    const struct run_event *e = event_of(t, run);

    for (size_t i = 0; i < e->functions.count; i++) {
        if (!strcmp(text(t, t->set.functions.data[e->functions.data[i].id].name), name))
            return &e->functions.data[i];
    }
    return NULL;
}

static void expect_cell(const struct run_cell *cell, double self_samples, double total_samples)
{
    assert_non_null(cell);
    assert_true(cell->self == self_samples * 1e7);
    assert_true(cell->total == total_samples * 1e7);
}

/* Recursion leads back to its node; functions are counted once a sample; below the owner nothing counts for itself. */
TEST(nodes)
{
    struct scene t;

    setup(&t);
    uint32_t main = python(&t, EMIT_NO_STACK, "main", 1), f = python(&t, main, "f", 2), g = python(&t, f, "g", 3);
    uint32_t again = python(&t, g, "f", 4), leaf = python(&t, again, "h", 5);
    uint32_t native = synthetic_stack(&t.s, leaf, synthetic_native(&t.s, "memcpy", "/libc.so", 0x1000, 1));
    uint32_t alone = synthetic_stack(&t.s, EMIT_NO_STACK, synthetic_native(&t.s, "start", "/libc.so", 0x1000, 1));
    many(&t, native, 3);
    many(&t, again, 2);
    many(&t, g, 1);
    many(&t, EMIT_NO_STACK, 4);
    many(&t, alone, 1);
    run_tally(&t, 1);
    assert_int_equal(event_of(&t, 0)->samples, 11);
    assert_true(event_of(&t, 0)->total == 11e7);
    assert_true(event_of(&t, 0)->weight == 1e7);
    assert_int_equal(event_of(&t, 0)->nodes.count, 5);
    assert_int_equal(event_of(&t, 0)->nodes.data[0].id, RUN_SET_ROOT);
    expect_cell(&event_of(&t, 0)->nodes.data[0], 5, 11);
    expect_cell(node_cell(&t, 0, "main"), 0, 6);
    expect_cell(node_cell(&t, 0, "main;f"), 2, 6);
    expect_cell(node_cell(&t, 0, "main;f;g"), 1, 1);
    expect_cell(node_cell(&t, 0, "main;f;h"), 3, 3);
    expect_cell(function_cell(&t, 0, "f"), 2, 6);
    expect_cell(function_cell(&t, 0, "g"), 1, 6); /* also where its node was cut away */
    expect_cell(function_cell(&t, 0, "h"), 3, 3);
    /* Lines of owners, and their files. */
    const struct run_event *e = event_of(&t, 0);
    assert_int_equal(e->lines.count, 3);
    for (size_t i = 0; i < 3; i++) {
        uint32_t line = t.set.lines.data[e->lines.data[i].id].line;
        expect_cell(&e->lines.data[i], line == 3 ? 1 : line == 4 ? 2 : 3, line == 3 ? 1 : line == 4 ? 2 : 3);
    }
    assert_int_equal(e->modules.count, 1);
    assert_string_equal(text(&t, e->modules.data[0].id), "/srv/x.py");
    expect_cell(&e->modules.data[0], 6, 6);
    teardown(&t);
}

TEST(facts)
{
    struct scene t;

    setup(&t);
    uint32_t other = synthetic_process(&t.s, 7, "celery");
    t.s.processes.data[other].python_version = 0x030d00f0;
    t.s.processes.data[other].free_threaded = true;
    synthetic_thread(&t.s, other, 8, "w");
    uint32_t main = python(&t, EMIT_NO_STACK, "main", 1);
    sample(&t.s, 0, main);
    sample(&t.s, 1, main);
    sample(&t.s, 1, main);
    sample(&t.s, 0, main);
    t.s.samples.data[3].capture = 2;
    run_tally(&t, 3);
    assert_int_equal(t.set.runs.count, 3);
    const struct run *a = &t.set.runs.data[0], *b = &t.set.runs.data[1], *c = &t.set.runs.data[2];
    assert_string_equal(text(&t, a->name), "a.bin");
    assert_string_equal(text(&t, a->host), "h");
    assert_string_equal(text(&t, a->kernel_release), "6.1.0");
    assert_string_equal(text(&t, a->backend), "bpf");
    assert_string_equal(text(&t, a->native), "dwarf");
    assert_string_equal(text(&t, a->filters), "--pid 1");
    assert_string_equal(text(&t, a->pythons), "3.12 3.13t");
    assert_string_equal(text(&t, a->programs), "celery, python3");
    assert_true(a->has_command && a->command_wall_ns == 123 && a->work == 20000);
    assert_int_equal(a->notes.count, 2);
    assert_string_equal(text(&t, a->notes.data[1].key), "jobs");
    assert_string_equal(text(&t, a->notes.data[1].value), "7");
    assert_int_equal(a->start_realtime_ns, 11);
    assert_int_equal(a->duration_ns, 12);
    assert_int_equal(a->cpu_count, 2);
    /* 27 samples are not shown; 3, 2 and 3 of 10 on all CPUs are lost. */
    const struct run_event *e = event_of(&t, 0);
    assert_int_equal(e->samples, 3);
    assert_int_equal(e->lost, 8);
    assert_int_equal(e->ticks, 38);
    assert_int_equal(e->frequency_hz, 99);
    assert_true(event_is_time(e->kind) && !event_is_waiting(e->kind));
    /* A capture without samples is a run without time. */
    assert_string_equal(text(&t, b->name), "b.bin");
    assert_int_equal(b->events.count, 0);
    assert_string_equal(text(&t, b->programs), "");
    assert_false(b->has_command);
    /* What the first capture had is forgotten. */
    assert_string_equal(text(&t, c->pythons), "3.12");
    expect_cell(function_cell(&t, 2, "main"), 1, 1);
    assert_int_equal(event_of(&t, 2)->ticks, 1);
    teardown(&t);
}

/* One function was edited while it was recorded, another is only a caller; below 3.11 the line tells functions apart. */
TEST(codes)
{
    static const struct emit_code codes[] = {{0}, {11, 40, 1, true}, {22, 40, 1, true}, {33, 40, 1, true}, {44, 8, 5, false}};
    struct scene t;

    setup(&t);
    t.s.model.codes = codes;
    t.s.model.code_count = 5;
    uint32_t main = python(&t, EMIT_NO_STACK, "main", 1);
    uint32_t f = python(&t, main, "f", 2), edited = python(&t, main, "f", 2), old = python(&t, main, "f", 5);
    t.s.frames.data[0].code = 1;
    t.s.frames.data[1].code = 2;
    t.s.frames.data[2].code = 3;
    t.s.frames.data[3].code = 4;
    many(&t, f, 3);
    many(&t, edited, 2);
    many(&t, old, 1);
    run_tally(&t, 1);
    const struct run_event *e = event_of(&t, 0);
    assert_int_equal(t.set.functions.count, 3);
    assert_int_equal(e->codes.count, 4);
    for (size_t i = 0; i < e->codes.count; i++) {
        const struct run_code *code = &t.set.codes.data[e->codes.data[i].id];
        double samples = code->fingerprint == 22 ? 3 : code->fingerprint == 33 ? 2 : 1;
        expect_cell(&e->codes.data[i], code->fingerprint == 11 ? 0 : samples, code->fingerprint == 11 ? 6 : samples);
    }
    expect_cell(function_cell(&t, 0, "f"), 5, 5);
    teardown(&t);
}

/* Two lambdas of a file have one name, and so are one function: one that the other calls has its own time at least. */
TEST(codes_of_one_name)
{
    static const struct emit_code codes[] = {{0}, {22, 40, 2, true}, {33, 40, 5, true}};
    struct scene t;

    setup(&t);
    t.s.model.codes = codes;
    t.s.model.code_count = 3;
    uint32_t outer = python(&t, EMIT_NO_STACK, "<lambda>", 2), inner = python(&t, outer, "<lambda>", 5);
    uint32_t alone = synthetic_stack(&t.s, EMIT_NO_STACK, 1);
    t.s.frames.data[0].code = 1;
    t.s.frames.data[1].code = 2;
    many(&t, inner, 3);
    many(&t, alone, 1);
    run_tally(&t, 1);
    const struct run_event *e = event_of(&t, 0);
    assert_int_equal(t.set.functions.count, 1);
    assert_int_equal(e->codes.count, 2);
    for (size_t i = 0; i < e->codes.count; i++) {
        bool is_outer = t.set.codes.data[e->codes.data[i].id].fingerprint == 22;
        expect_cell(&e->codes.data[i], is_outer ? 0 : 4, is_outer ? 3 : 4);
    }
    teardown(&t);
}

/* 16 blocks of half a second: in turns all of f and all of g; the same of h under f, except every fourth block. */
TEST(dispersion)
{
    struct scene t;

    setup(&t);
    uint32_t main = python(&t, EMIT_NO_STACK, "main", 1), f = python(&t, main, "f", 2), g = python(&t, main, "g", 3);
    uint32_t h = python(&t, f, "h", 4);
    for (int i = 0; i < 16; i++) {
        many(&t, i % 2 ? g : i % 4 ? h : f, 25);
        many(&t, i % 2 ? g : h, 25);
    }
    run_tally(&t, 1);
    assert_int_equal(event_of(&t, 0)->samples, 800);
    /* k is 50 or 0 of 50: residuals are 25, of 16 blocks; expected are 800 / 4. */
    double expected = 16.0 * 25 * 25 / 200 * 16 / 15;
    assert_true(fabs(node_cell(&t, 0, "main;f")->dispersion - expected) <= 0.5 / RUN_DISPERSION_STEPS);
    assert_true(fabs(function_cell(&t, 0, "f")->dispersion - expected) <= 0.5 / RUN_DISPERSION_STEPS);
    assert_true(fabs(function_cell(&t, 0, "g")->self_dispersion - expected) <= 0.5 / RUN_DISPERSION_STEPS);
    /* Of f's 8 blocks 4 have 50 of 50, 4 have 25: r = 3/4, residuals 12.5, expected 400 * 3/16. */
    expected = 8.0 * 12.5 * 12.5 / 75 * 8 / 7;
    assert_true(fabs(node_cell(&t, 0, "main;f;h")->dispersion - expected) <= 0.5 / RUN_DISPERSION_STEPS);
    assert_true(fabs(node_cell(&t, 0, "main;f")->self_dispersion - expected) <= 0.5 / RUN_DISPERSION_STEPS);
    /* What is all of its parent, or nothing of itself, does not vary. */
    assert_true(node_cell(&t, 0, "main")->dispersion == 1);
    assert_true(node_cell(&t, 0, "main")->self_dispersion == 1);
    assert_true(node_cell(&t, 0, "main;g")->self_dispersion == 1);
    teardown(&t);
}

/* After 1,024 blocks they are twice as long; here f and g take turns in every other half of those, which then are alike. */
TEST(long_run)
{
    struct scene t;

    setup(&t);
    uint32_t main = python(&t, EMIT_NO_STACK, "main", 1), f = python(&t, main, "f", 2), g = python(&t, main, "g", 3);
    for (int i = 0; i < 2048; i++)
        many(&t, i % 2 ? f : g, 50);
    run_tally(&t, 1);
    double expected = 1024.0 * 25 * 25 / (2048 * 50 / 4.0) * 1536 / 1535;
    assert_true(fabs(node_cell(&t, 0, "main;f")->dispersion - expected) <= 0.5 / RUN_DISPERSION_STEPS);
    expect_cell(node_cell(&t, 0, "main;f"), 51200, 51200);
    teardown(&t);
}

/* The sums of a tree are those that walking from each leaf to the root would give. */
TEST(tree)
{
    struct tally_tree tree = {0};
    double expected[200];
    uint32_t random = 1;

    assert_true(tally_tree_push(&tree, 0));
    for (uint32_t i = 1; i < 200; i++) {
        random = random * 1103515245 + 12345;
        assert_true(tally_tree_push(&tree, (random >> 16) % (i < 5 ? i : 4) + (i < 5 ? 0 : i - 4)));
    }
    for (int block = 0; block < 3; block++) {
        memset(expected, 0, sizeof expected);
        for (int i = 0; i < 40; i++) {
            random = random * 1103515245 + 12345;
            uint32_t leaf = (random >> 16) % 200;
            assert_true(tally_tree_add(&tree, leaf, 1 + i % 3));
            for (uint32_t step = leaf;; step = tree.steps.data[step].parent) {
                expected[step] += 1 + i % 3;
                if (!step)
                    break;
            }
        }
        tally_tree_add_up(&tree);
        for (uint32_t i = 0; i < 200; i++) {
            assert_true(tree.steps.data[i].now == expected[i]);
            assert_true(tree.steps.data[i].seen == (expected[i] > 0));
        }
        tally_tree_clear(&tree);
    }
    tally_tree_deinit(&tree);
}

/* Independent samples, or too few of them, are no reason to doubt the binomial distribution. */
TEST(dispersion_of_few)
{
    struct scene t;

    setup(&t);
    uint32_t main = python(&t, EMIT_NO_STACK, "main", 1), f = python(&t, main, "f", 2), g = python(&t, main, "g", 3);
    for (int i = 0; i < 20; i++) {
        many(&t, f, i < 7 ? 50 : 25);
        many(&t, i < 7 ? f : g, i < 7 ? 0 : 25);
        sample(&t.s, 0, i == 3 ? python(&t, main, "rare", 9) : main);
    }
    run_tally(&t, 1);
    assert_true(node_cell(&t, 0, "main;f")->dispersion > 1);
    assert_true(node_cell(&t, 0, "main;rare")->dispersion == 1);
    run_set_deinit(&t.set);
    assert_true(run_set_init(&t.set, NULL));
    t.s.samples.count = 7 * 51; /* seven blocks */
    run_tally(&t, 1);
    assert_true(node_cell(&t, 0, "main;f")->dispersion == 1);
    teardown(&t);
}

/* Events have blocks of their own, whose samples mix. */
TEST(events)
{
    struct scene t;

    setup(&t);
    uint32_t waits = synthetic_event(&t.s, "off-cpu", "ns", true);
    t.s.events.data[waits].kind = EVENT_OFF_CPU;
    uint32_t main = python(&t, EMIT_NO_STACK, "main", 1), f = python(&t, main, "f", 2);
    for (int i = 0; i < 300; i++) {
        sample(&t.s, 0, i % 3 ? main : f);
        synthetic_sample(&t.s, (struct emit_sample){.value = i % 2 ? 1000000000 : 3000000000, .event = waits, .stack = i % 3 ? f : main});
    }
    run_tally(&t, 1);
    expect_cell(function_cell(&t, 0, "f"), 100, 100);
    expect_cell(function_cell(&t, 0, "main"), 200, 300);
    const struct run_event *e = run_event_find(&t.set, &t.set.runs.data[0], "off-cpu");
    assert_true(event_is_waiting(e->kind));
    assert_int_equal(e->samples, 300);
    assert_true(e->total == 600e9);
    assert_true(e->weight == (150 * 1e18 + 150 * 9e18) / 600e9);
    expect_cell(&e->nodes.data[2], 200 * 2 * 100, 200 * 2 * 100);
    teardown(&t);
}

TEST(limits)
{
    struct scene t;
    bool fitted = false;

    setup(&t);
    uint32_t stack = EMIT_NO_STACK;
    for (uint32_t i = 0; i < 50; i++)
        stack = python(&t, stack, i % 2 ? "f" : "g", i);
    many(&t, stack, 60);
    t.s.model.captures = captures;
    t.s.model.capture_count = 3;
    t.s.model.filters = "";
    run_set_deinit(&t.set);
    for (uint64_t max = 0; !fitted; max += 1024) {
        struct limits limits = {.memory_max = max, .work_max = UINT64_MAX};
        void *state_of = NULL;
        struct error *err = run_set_init(&t.set, &limits) ? NULL : error_no_memory();
        assert_true(max < 1 << 20);
        if (!err)
            err = tally_create(&t.s.model, &t.set, &state_of);
        for (size_t i = 0; !err && i < t.s.samples.count; i++)
            err = tally_emitter.sample(state_of, &t.s.samples.data[i]);
        if (!err)
            err = tally_emitter.end(state_of);
        tally_emitter.destroy(state_of);
        fitted = !err;
        assert_true(fitted || limits.exceeded);
        error_destroy(err);
        run_set_deinit(&t.set);
    }
    assert_true(run_set_init(&t.set, NULL));
    teardown(&t);
}
