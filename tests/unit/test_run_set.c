/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as tables of counts: numbers by contents, copies from set to set. */
#include "tests/unit/test.h"
#include "tests/unit/run_set_fixture.h"

TEST(numbers)
{
    struct run_set s;

    assert_true(run_set_init(&s, NULL));
    assert_int_equal(set_text(&s, ""), 0);
    assert_int_equal(set_text(&s, "a"), set_text(&s, "a"));
    assert_int_equal(run_set_text(&s, "a\0b", 3), set_text(&s, "a"));
    assert_string_equal(run_set_text_get(&s, set_text(&s, "a")), "a");
    /* A qualified name is enough, wherever the function starts; others need the line, too. */
    uint32_t f = set_function(&s, "x.py", "C.f", 3, false), old = set_function(&s, "x.py", "f", 3, true);
    assert_int_equal(set_function(&s, "x.py", "C.f", 9, false), f);
    assert_int_equal(s.functions.data[f].first_line, 3);
    assert_int_equal(set_function(&s, "x.py", "f", 3, true), old);
    assert_true(set_function(&s, "x.py", "f", 9, true) != old);
    assert_true(set_function(&s, "y.py", "C.f", 3, false) != f);
    assert_int_equal(s.functions.count, 4);
    uint32_t code = run_set_code(&s, &(struct run_code){f, 3, 40, 77});
    assert_int_equal(run_set_code(&s, &(struct run_code){f, 3, 40, 77}), code);
    assert_true(run_set_code(&s, &(struct run_code){f, 3, 40, UINT64_C(77) << 32}) != code);
    assert_int_equal(run_set_line(&s, &(struct run_line){code, 5}), run_set_line(&s, &(struct run_line){code, 5}));
    uint32_t node = run_set_node(&s, RUN_SET_ROOT, f);
    assert_int_equal(node, 1);
    assert_int_equal(run_set_node(&s, RUN_SET_ROOT, f), node);
    assert_int_equal(run_set_node(&s, node, old), 2);
    assert_int_equal(s.nodes.data[2].parent, node);
    run_set_deinit(&s);
}

TEST(copy)
{
    struct run_set from, to;

    assert_true(run_set_init(&from, NULL) && run_set_init(&to, NULL));
    set_run(&from);
    /* Here numbers are others. */
    uint32_t main = set_function(&to, "x.py", "main", 1, false);
    OK(run_set_copy(&to, &from, 0));
    OK(run_set_copy(&to, &from, 0));
    assert_int_equal(to.runs.count, 2);
    assert_int_equal(to.functions.count, 2);
    assert_int_equal(to.nodes.count, 3); /* the node that no run has was not copied */
    const struct run *run = &to.runs.data[1];
    assert_string_equal(run_set_text_get(&to, run->name), "one.bin");
    assert_string_equal(run_set_text_get(&to, run->pythons), "3.12");
    assert_int_equal(run->cpu_count, 4);
    assert_true(run->has_command);
    assert_int_equal(run->notes.count, 1);
    assert_string_equal(run_set_text_get(&to, run->notes.data[0].value), "1.5");
    assert_null(run_event_find(&to, run, "page-faults"));
    const struct run_event *e = run_event_find(&to, run, "cpu-clock");
    assert_non_null(e);
    assert_true(event_is_time(e->kind) && e->samples == 10 && e->total == 100 && e->weight == 10 && e->lost == 1 && e->ticks == 11);
    assert_int_equal(e->functions.count, 2);
    assert_int_equal(e->functions.data[0].id, main); /* in order of the numbers here */
    assert_true(e->functions.data[0].self == 70 && e->functions.data[1].self == 30);
    assert_true(e->functions.data[0].dispersion == 2 && e->functions.data[0].self_dispersion == 3);
    const struct run_node *leaf = &to.nodes.data[e->nodes.data[2].id];
    assert_string_equal(run_set_text_get(&to, to.functions.data[leaf->function].name), "f");
    assert_int_equal(to.nodes.data[leaf->parent].function, main);
    assert_int_equal(to.codes.data[e->codes.data[0].id].fingerprint, 99);
    assert_int_equal(to.lines.data[e->lines.data[0].id].line, 8);
    assert_string_equal(run_set_text_get(&to, e->modules.data[0].id), "x.py");
    run_set_deinit(&from);
    run_set_deinit(&to);
}

TEST(same)
{
    struct run_set s;

    assert_true(run_set_init(&s, NULL));
    set_run(&s);
    set_run(&s);
    struct run *a = &s.runs.data[0], *b = &s.runs.data[1];
    assert_true(run_is_same(a, b));
    b->events.data[0].total++;
    assert_false(run_is_same(a, b));
    b->events.data[0].total--;
    b->duration_ns++;
    assert_false(run_is_same(a, b));
    b->duration_ns--;
    a->start_realtime_ns = b->start_realtime_ns = 0;
    assert_false(run_is_same(a, b)); /* nobody knows */
    run_set_deinit(&s);
}

/* What does not fit into the limits fails, and leaves nothing behind. */
TEST(limits)
{
    struct run_set from, to;

    assert_true(run_set_init(&from, NULL));
    set_run(&from);
    bool fitted = false;
    for (uint64_t max = 0; !fitted; max += 512) {
        struct limits limits = {.memory_max = max, .work_max = UINT64_MAX};
        assert_true(max < 1 << 20);
        struct error *err = run_set_init(&to, &limits) ? run_set_copy(&to, &from, 0) : error_no_memory();
        fitted = !err;
        assert_true(fitted || limits.exceeded);
        error_destroy(err);
        run_set_deinit(&to);
    }
    run_set_deinit(&from);
}
