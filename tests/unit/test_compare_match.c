/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions, files and lines of two sets of runs are one. */
#include "tests/unit/test.h"

#include "tests/unit/compare_fixture.h"

#include "formats/compare/match_repeated.h"

/* Three old runs of one set of stacks and three new ones of another, each stack with 100 samples a run. Lists end with NULL. */
static struct comparison compared(struct made *m, const char *const *old, const char *const *new, const struct compare_options *options)
{
    struct comparison c;

    made_init(m);
    for (int run = 0; run < 6; run++) {
        for (const char *const *stack = run < 3 ? old : new; *stack; stack++)
            made_samples(m, *stack, 100 + (double)((run * 7) % 5));
        made_run(m, "run");
    }
    OK(made_compare(m, 3, 3, options ? options : &(struct compare_options){0}, &c));
    made_check(&c);
    return c;
}

#define STACKS(...) (const char *const[]){__VA_ARGS__, NULL}

/* The own time of a function is one row, with this match; it was called `old` where that is not NULL. */
static void check(const struct comparison *c, const char *name, enum compare_match match, const char *old)
{
    const struct compare_row *row = made_row(c, COMPARE_FUNCTION_SELF, name);

    if (row->match != match)
        fail_msg("%s: match is %d, not %d", name, (int)row->match, (int)match);
    if (old)
        assert_string_equal(run_set_text_get(c->set, c->set->functions.data[row->old_function].name), old);
}

static void done(struct made *m, struct comparison *c)
{
    comparison_deinit(c);
    made_deinit(m);
}

TEST(moved_lines)
{
    struct made m;

    struct comparison c = compared(&m, STACKS("a.py:f@7!10", "a.py:g@8!20", "a.py:h@9!30"),
                                   STACKS("a.py:f@7!10", "a.py:g@8!25", "a.py:h@5!35"), NULL);
    check(&c, "f", COMPARE_SAME, NULL);
    check(&c, "g", COMPARE_MOVED, NULL);
    assert_int_equal(made_row(&c, COMPARE_FUNCTION_SELF, "g")->code, COMPARE_CODE_EQUAL);
    assert_int_equal(made_row(&c, COMPARE_FUNCTION_SELF, "h")->code, COMPARE_CODE_CHANGED);
    done(&m, &c);
}

/* Checkouts and virtual environments in other folders, another one for each run. */
TEST(other_folders)
{
    static const char *const files[] = {"/src/%d/shop/cart.py:add", "/src/%d/shop/__init__.py:start", "/src/%d/shop/db/__init__.py:query",
                                        "/venv%d/lib/python3.12/site-packages/flask/app.py:run", "<frozen importlib>:load"};
    struct comparison c;
    struct made m;
    char stack[200];

    made_init(&m);
    for (int run = 0; run < 6; run++) {
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            snprintf(stack, sizeof stack, "%s", files[i]);
            char *number = strstr(stack, "%d");
            if (number)
                memcpy(number, (char[2]){'r', (char)('0' + run)}, 2);
            made_samples(&m, stack, 100 + run);
        }
        made_run(&m, "run");
    }
    OK(made_compare(&m, 3, 3, &(struct compare_options){0}, &c));
    check(&c, "add", COMPARE_MOVED, "add");
    check(&c, "start", COMPARE_MOVED, "start");
    check(&c, "query", COMPARE_MOVED, "query");
    check(&c, "run", COMPARE_MOVED, "run");
    check(&c, "load", COMPARE_SAME, NULL);
    done(&m, &c);
}

/* Two files with functions of one name stay two, also if each set has only one of them and the other's folder stayed. */
TEST(one_name_in_two_files)
{
    struct made m;

    struct comparison c = compared(&m, STACKS("/p/a/util.py:get@1", "/p/b/util.py:get@2"), STACKS("/p/a/util.py:get@1", "/p/b/util.py:get@2"), NULL);
    size_t rows = 0;
    for (size_t i = 0; i < c.rows.count; i++)
        rows += c.rows.data[i].kind == COMPARE_FUNCTION_SELF;
    assert_int_equal(rows, 2);
    done(&m, &c);

    c = compared(&m, STACKS("/p/a/util.py:get@1", "/p/a/x.py:f", "/p/b/y.py:g"), STACKS("/p/b/util.py:get@2", "/p/a/x.py:f", "/p/b/y.py:g"), NULL);
    size_t alone = 0;
    for (size_t i = 0; i < c.rows.count; i++)
        alone += c.rows.data[i].kind == COMPARE_FUNCTION_SELF &&
                 (c.rows.data[i].match == COMPARE_NEW || c.rows.data[i].match == COMPARE_VANISHED);
    assert_int_equal(alone, 2);
    done(&m, &c);

    /* Other names of files, other code. */
    c = compared(&m, STACKS("a.py:get@1", "x.py:f"), STACKS("b.py:get@2", "x.py:f"), NULL);
    assert_true(made_row(&c, COMPARE_FUNCTION_SELF, "get")->match >= COMPARE_NEW);
    done(&m, &c);
}

TEST(renamed)
{
    struct made m;

    struct comparison c = compared(&m, STACKS("a.py:old_name@7", "a.py:old_name.<locals>.<lambda>@3^8", "a.py:Box.fill@8", "a.py:Box.pour@9"),
                                   STACKS("a.py:new_name@7", "a.py:new_name.<locals>.<lambda>@4^8", "a.py:Crate.fill@8", "a.py:Crate.pour@5"), NULL);
    check(&c, "new_name", COMPARE_RENAMED, "old_name");
    check(&c, "new_name.<locals>.<lambda>", COMPARE_RENAMED, "old_name.<locals>.<lambda>");
    check(&c, "Crate.fill", COMPARE_RENAMED, "Box.fill");
    check(&c, "Crate.pour", COMPARE_RENAMED, "Box.pour");
    assert_int_equal(made_row(&c, COMPARE_FUNCTION_SELF, "Crate.pour")->code, COMPARE_CODE_CHANGED);
    done(&m, &c);

    /* Short tables of lines are alike by chance, two candidates say nothing, and what stayed is no candidate. */
    c = compared(&m, STACKS("a.py:gone@7^16", "a.py:stays@9", "a.py:f"), STACKS("a.py:fresh@7^16", "a.py:stays@9", "a.py:copy@9", "a.py:f"), NULL);
    check(&c, "fresh", COMPARE_NEW, NULL);
    check(&c, "gone", COMPARE_VANISHED, NULL);
    check(&c, "copy", COMPARE_NEW, NULL);
    done(&m, &c);
    c = compared(&m, STACKS("a.py:x@7", "a.py:f"), STACKS("a.py:y@7", "a.py:z@7", "a.py:f"), NULL);
    check(&c, "x", COMPARE_VANISHED, NULL);
    check(&c, "y", COMPARE_NEW, NULL);
    done(&m, &c);

    /* A class that became two: where a method with other code went is not known. */
    c = compared(&m, STACKS("a.py:Box.fill@8", "a.py:Box.pour@9", "a.py:Box.wash@3", "a.py:f"),
                 STACKS("a.py:Crate.fill@8", "a.py:Jug.pour@9", "a.py:Crate.wash@4", "a.py:f"), NULL);
    check(&c, "Crate.fill", COMPARE_RENAMED, "Box.fill");
    check(&c, "Jug.pour", COMPARE_RENAMED, "Box.pour");
    check(&c, "Crate.wash", COMPARE_NEW, NULL);
    check(&c, "Box.wash", COMPARE_VANISHED, NULL);
    done(&m, &c);

    /* To another file with the same code; nodes below it stay nodes. */
    c = compared(&m, STACKS("/p/a.py:main;/p/a.py:f@7;/p/a.py:g", "/p/a.py:main;/p/b.py:h"), STACKS("/p/a.py:main;/p/b.py:f@7;/p/a.py:g", "/p/a.py:main;/p/b.py:h"), NULL);
    const struct compare_row *g = made_row(&c, COMPARE_NODE, "g");
    assert_int_equal(g->match, COMPARE_SAME);
    done(&m, &c);
}

/* With other versions of CPython fingerprints say nothing. */
TEST(other_pythons)
{
    struct comparison c;
    struct made m;

    made_init(&m);
    for (int run = 0; run < 6; run++) {
        made_samples(&m, run < 3 ? "a.py:old@7" : "a.py:new@7", 100);
        made_samples(&m, run < 3 ? "a.py:f@8" : "a.py:f@9", 100);
        uint32_t number = made_run(&m, "run");
        m.set.runs.data[number].pythons = made_text(&m, run < 3 ? "3.12" : "3.13");
    }
    OK(made_compare(&m, 3, 3, &(struct compare_options){.force = true}, &c));
    check(&c, "new", COMPARE_NEW, NULL);
    assert_int_equal(made_row(&c, COMPARE_FUNCTION_SELF, "f")->code, COMPARE_CODE_UNKNOWN);
    done(&m, &c);
}

/* Before 3.11 a method's name does not tell its class: code and order do. */
TEST(repeated_names)
{
    struct repeated old[] = {{10, 1, 0}, {20, 2, 0}, {30, 3, 0}, {40, 4, 0}}, new[] = {{15, 1, 0}, {25, 9, 0}, {35, 3, 0}, {45, 8, 0}};
    struct made m;

    assert_true(match_repeated(old, 4, new, 4));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(old[i].partner, i);
    /* One was added: what lies between known ones is paired up only where it is as many. */
    struct repeated more[] = {{5, 7, 0}, {15, 1, 0}, {18, 6, 0}, {25, 9, 0}, {35, 3, 0}};
    assert_true(match_repeated(old, 3, more, 5));
    assert_int_equal(old[0].partner, 1);
    assert_int_equal(old[1].partner, REPEATED_NONE);
    assert_int_equal(old[2].partner, 4);
    /* The same line with other code is another function. */
    struct repeated shifted[] = {{20, 1, 0}, {30, 2, 0}};
    assert_true(match_repeated(old, 2, shifted, 2));
    assert_int_equal(old[0].partner, 0);
    assert_int_equal(old[1].partner, 1);
    /* One of two with the same code is gone: nobody knows which. */
    struct repeated twice[] = {{10, 5, 0}, {20, 5, 0}, {30, 3, 0}}, once[] = {{15, 5, 0}, {25, 3, 0}};
    assert_true(match_repeated(twice, 3, once, 2));
    assert_int_equal(twice[0].partner, REPEATED_NONE);
    assert_int_equal(twice[1].partner, REPEATED_NONE);
    assert_int_equal(twice[2].partner, 1);

    struct comparison c = compared(&m, STACKS("a.py:run~@1!10", "a.py:run~@2!20", "a.py:f"), STACKS("a.py:run~@1!20", "a.py:run~@2!30", "a.py:f"), NULL);
    size_t rows = 0;
    for (size_t i = 0; i < c.rows.count; i++) {
        rows += c.rows.data[i].kind == COMPARE_FUNCTION_SELF;
        assert_true(c.rows.data[i].match == COMPARE_SAME || c.rows.data[i].match == COMPARE_MOVED);
    }
    assert_int_equal(rows, 3);
    done(&m, &c);
}

/* Two lines went in before line 12 of the old text, whose line 13 is gone. */
static uint32_t new_line(void *ctx, const char *old_file, const char *new_file, uint32_t old_line)
{
    (void)ctx;
    assert_string_equal(old_file, "a.py");
    assert_string_equal(new_file, "a.py");
    return old_line == 13 ? 0 : old_line < 12 ? old_line : old_line + 2;
}

static const struct compare_row *line_row(const struct comparison *c, uint32_t line)
{
    for (size_t i = 0; i < c->rows.count; i++)
        if (c->rows.data[i].kind == COMPARE_LINE && c->set->lines.data[c->rows.data[i].line].line == line)
            return &c->rows.data[i];
    return NULL;
}

TEST(lines)
{
    const struct compare_options sources = {.new_line = new_line};
    struct made m;

    /* The function moved from line 10 to 30: its lines are the same. */
    struct comparison c = compared(&m, STACKS("a.py:f@7!10+1", "a.py:f@7!10+2"), STACKS("a.py:f@7!30+1", "a.py:f@7!30+2"), NULL);
    assert_non_null(line_row(&c, 31));
    assert_int_equal(line_row(&c, 31)->match, COMPARE_MOVED);
    done(&m, &c);
    /* Its code changed: only the sources tell. */
    const char *const *old = STACKS("a.py:f@7!10+1", "a.py:f@7!10+2", "a.py:f@7!10+3"), *const *new = STACKS("a.py:f@8!10+1", "a.py:f@8!10+2", "a.py:f@8!10+4");
    c = compared(&m, old, new, NULL);
    assert_null(line_row(&c, 11));
    assert_null(line_row(&c, 14));
    done(&m, &c);
    c = compared(&m, old, new, &sources);
    assert_non_null(line_row(&c, 11));
    assert_int_equal(line_row(&c, 12)->match, COMPARE_NEW);
    assert_int_equal(line_row(&c, 13)->match, COMPARE_VANISHED);
    assert_true(line_row(&c, 14)->old_samples > 90 && line_row(&c, 14)->new_samples > 90); /* 12 became 14 */
    done(&m, &c);
}

/* Very many functions, on a long path and side by side: time and memory are bounded. */
TEST(hostile_sizes)
{
    struct limits limits = {.memory_max = 400 << 20, .work_max = UINT64_C(4000000000)};
    struct comparison c;
    struct made m;
    char name[64];

    NOT_SANITIZED();
    made_init(&m);
    m.set.limits = &limits;
    for (int run = 0; run < 6; run++) {
        uint32_t deep = RUN_SET_ROOT;
        for (uint32_t i = 0; i < 50000; i++) {
            snprintf(name, sizeof name, "f%u", i);
            uint32_t f = run_set_function(&m.set, &(struct run_function){made_text(&m, i % 2 ? "a.py" : "b.py"), made_text(&m, name), 1, false});
            uint32_t node = run_set_node(&m.set, i < 900 ? deep : RUN_SET_ROOT, f);
            double samples = 20 + (i * 7 + (uint32_t)run * (i % 5)) % 11 + (run < 3 ? 0 : 9 * (i % 3)), value = samples * MADE_WEIGHT;
            made_cell(&m.now.nodes, node, value, i < 900 ? value * (901 - i) : value);
            made_cell(&m.now.functions, f, value, value);
            m.now.total += value;
            deep = i < 900 ? node : deep;
        }
        made_cell(&m.now.nodes, RUN_SET_ROOT, 0, m.now.total);
        made_run(&m, "run");
    }
    struct error *err = made_compare(&m, 3, 3, &(struct compare_options){0}, &c);
    if (!err)
        made_check(&c);
    assert_null(err);
    assert_true(c.rows.count > 50000);
    comparison_deinit(&c);
    /* A limit that is too low is an error, whatever is done at that time. */
    for (uint64_t work = 1; work < UINT64_C(100000000); work *= 100) {
        limits.work_done = 0;
        limits.work_max = work;
        err = made_compare(&m, 3, 3, &(struct compare_options){0}, &c);
        error_destroy(err);
        comparison_deinit(&c);
    }
    made_deinit(&m);
}

/* Cells from elsewhere may hold anything. */
TEST(hostile_values)
{
    static const double values[] = {NAN, INFINITY, -INFINITY, -5, 0, 1e-300, 1e300, 1.7e308};
    struct made m;

    made_init(&m);
    for (int run = 0; run < 6; run++) {
        for (int i = 0; i < 3; i++)
            made_samples(&m, (const char *const[]){"a.py:main;a.py:f", "a.py:main;a.py:g", "a.py:main"}[i], 1000 + run * i);
        made_run(&m, "run");
    }
    for (size_t i = 0; i < 8 * 8 * 4; i++) {
        struct comparison c;
        struct run_event *e = &m.set.runs.data[i % 6].events.data[0];
        struct run_cells *const lists[] = {&e->nodes, &e->functions, &e->lines, &e->codes};
        struct run_cells *list = lists[i / 64];
        struct run_cell *cell = &list->data[i % list->count], was = *cell;
        cell->total = values[i % 8];
        cell->self = values[i / 8 % 8];
        cell->dispersion = (float)values[(i + 3) % 8];
        struct error *err = made_compare(&m, 3, 3, &(struct compare_options){0}, &c);
        if (!err)
            made_check(&c);
        error_destroy(err);
        comparison_deinit(&c);
        *cell = was;
    }
    made_deinit(&m);
}
