/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as tables of counts: numbers by contents, copies from set to set. */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/compare/run_set.h"

static uint32_t text(struct run_set *s, const char *t)
{
    return run_set_text(s, t, strlen(t));
}

static uint32_t function(struct run_set *s, const char *file, const char *name, uint32_t first_line, bool unqualified)
{
    return run_set_function(s, &(struct run_function){text(s, file), text(s, name), first_line, unqualified});
}

static void test_numbers(void **state)
{
    struct run_set s;

    (void)state;
    assert_true(run_set_init(&s, NULL));
    assert_int_equal(text(&s, ""), 0);
    assert_int_equal(text(&s, "a"), text(&s, "a"));
    assert_int_equal(run_set_text(&s, "a\0b", 3), text(&s, "a"));
    assert_string_equal(run_set_text_get(&s, text(&s, "a")), "a");
    /* A qualified name is enough, wherever the function starts; others need the line, too. */
    uint32_t f = function(&s, "x.py", "C.f", 3, false), old = function(&s, "x.py", "f", 3, true);
    assert_int_equal(function(&s, "x.py", "C.f", 9, false), f);
    assert_int_equal(s.functions.data[f].first_line, 3);
    assert_int_equal(function(&s, "x.py", "f", 3, true), old);
    assert_true(function(&s, "x.py", "f", 9, true) != old);
    assert_true(function(&s, "y.py", "C.f", 3, false) != f);
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

static void test_find(void **state)
{
    const struct run_cell cells[] = {{.id = 1}, {.id = 4}, {.id = 5}, {.id = 9}};

    (void)state;
    for (uint32_t id = 0; id < 11; id++) {
        const struct run_cell *cell = run_cells_find(cells, 4, id);
        bool there = id == 1 || id == 4 || id == 5 || id == 9;
        assert_int_equal(cell != NULL, there);
        if (there)
            assert_int_equal(cell->id, id);
    }
    assert_null(run_cells_find(NULL, 0, 0));
}

static void push(struct run_cells *cells, uint32_t id, double self, double total)
{
    assert_true(VEC_PUSH(cells, ((struct run_cell){.id = id, .dispersion = 2, .self_dispersion = 3, .self = self, .total = total})));
}

/* main -> f, with 30 of 100 in f. `main` is the second function of the set, and the second node is of another run. */
static void add_run(struct run_set *s)
{
    struct run *run = run_set_add(s);
    uint32_t f = function(s, "x.py", "f", 7, false), main = function(s, "x.py", "main", 1, false);
    struct run_event event = {.name = text(s, "cpu-clock"), .unit = text(s, "ns"), .is_time = true, .frequency_hz = 99,
                              .samples = 10, .total = 100, .weight = 10, .ticks = 11, .lost = 1};

    assert_non_null(run);
    run->name = text(s, "one.bin");
    run->pythons = text(s, "3.12");
    run->cpu_count = 4;
    run->start_realtime_ns = 5;
    run->work = 1.5;
    run->has_command = true;
    assert_true(VEC_PUSH(&run->notes, ((struct run_note){text(s, "work"), text(s, "1.5")})));
    run_set_node(s, RUN_SET_ROOT, f);
    uint32_t node = run_set_node(s, RUN_SET_ROOT, main), leaf = run_set_node(s, node, f);
    uint32_t code = run_set_code(s, &(struct run_code){f, 7, 40, 99});
    push(&event.nodes, RUN_SET_ROOT, 0, 100);
    push(&event.nodes, node, 70, 100);
    push(&event.nodes, leaf, 30, 30);
    push(&event.functions, f, 30, 30);
    push(&event.functions, main, 70, 100);
    push(&event.codes, code, 30, 30);
    push(&event.lines, run_set_line(s, &(struct run_line){code, 8}), 30, 30);
    push(&event.modules, text(s, "x.py"), 100, 100);
    assert_true(VEC_PUSH(&run->events, event));
}

static void test_copy(void **state)
{
    struct run_set from, to;

    (void)state;
    assert_true(run_set_init(&from, NULL) && run_set_init(&to, NULL));
    add_run(&from);
    /* Here numbers are others. */
    uint32_t main = function(&to, "x.py", "main", 1, false);
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
    assert_true(e->is_time && e->samples == 10 && e->total == 100 && e->weight == 10 && e->lost == 1 && e->ticks == 11);
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

static void test_same(void **state)
{
    struct run_set s;

    (void)state;
    assert_true(run_set_init(&s, NULL));
    add_run(&s);
    add_run(&s);
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
static void test_limits(void **state)
{
    struct run_set from, to;

    (void)state;
    assert_true(run_set_init(&from, NULL));
    add_run(&from);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_find),   cmocka_unit_test(test_copy),
        cmocka_unit_test(test_same),    cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
