/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons of made runs: what is found, where, and what it is owed to. */
#include "tests/unit/test.h"

#include "tests/unit/compare_fixture.h"

/* How much longer the parts of the service take than usual: 1.1 for 10 % more. */
struct service {
    double score, price, render, big, parse;
    const char *score_name; /* NULL: app.py:score */
    double added;           /* samples of a function that is new, below render */
};
static const struct service USUAL = {1, 1, 1, 1, 1, NULL, 0};

/* A run of a service that answers requests of three kinds, in a mix that differs from run to run. */
static uint32_t add_service(struct made *m, const char *name, struct service s)
{
    const double spread = 0.01;
    double small = exp(0.2 * (made_random(m) - 0.5)), big = s.big * exp(0.2 * (made_random(m) - 0.5));
    char stack[256];

    snprintf(stack, sizeof stack, "app.py:main;app.py:serve;app.py:small;%s", s.score_name ? s.score_name : "app.py:score");
    made_samples(m, stack, made_count(m, 1200 * small * s.score, spread));
    made_samples(m, "app.py:main;app.py:serve;app.py:small;app.py:price", made_count(m, 500 * small * s.price, spread));
    made_samples(m, "app.py:main;app.py:serve;app.py:small", made_count(m, 300 * small, spread));
    made_samples(m, "app.py:main;app.py:serve;app.py:big;lib/render.py:render", made_count(m, 700 * big * s.render, spread));
    made_samples(m, "app.py:main;app.py:serve;app.py:big;lib/render.py:escape", made_count(m, 400 * big, spread));
    made_samples(m, "app.py:main;app.py:serve;app.py:big;lib/json.py:dump", made_count(m, 300 * big, spread));
    made_samples(m, "app.py:main;app.py:serve;lib/http.py:parse", made_count(m, 800 * s.parse, spread));
    if (s.added > 0)
        made_samples(m, "app.py:main;app.py:serve;app.py:big;lib/render.py:render;lib/audit.py:audit;lib/audit.py:write",
                     made_count(m, s.added, spread));
    return made_run(m, name);
}

static void add_services(struct made *m, size_t old, size_t new, struct service changed)
{
    char name[32];

    for (size_t i = 0; i < old + new; i++) {
        snprintf(name, sizeof name, "%s-%zu.bin", i < old ? "old" : "new", i);
        add_service(m, name, i < old ? USUAL : changed);
    }
}

static struct comparison compared(struct made *m, size_t old, size_t new)
{
    const struct compare_options options = {0};
    struct comparison c;

    OK(made_compare(m, old, new, &options, &c));
    made_check(&c);
    return c;
}

static size_t finding_count(const struct comparison *c)
{
    size_t count = 0;

    for (size_t i = 1; i < c->rows.count; i++)
        count += c->rows.data[i].because == COMPARE_NO_ROW &&
                 (c->rows.data[i].answer == COMPARE_SLOWER || c->rows.data[i].answer == COMPARE_FASTER);
    return count;
}

TEST(nothing_changed)
{
    struct made m;

    made_init(&m);
    add_services(&m, 10, 10, USUAL);
    struct comparison c = compared(&m, 10, 10);
    assert_int_equal(finding_count(&c), 0);
    assert_true(c.conclusive);
    assert_int_equal(c.rows.data[0].kind, COMPARE_TOTAL);
    assert_true(c.rows.data[0].tested);
    assert_int_equal(c.rows.data[0].answer, COMPARE_CANNOT_TELL);
    assert_int_equal(c.factors.count, 20);
    comparison_deinit(&c);
    made_deinit(&m);
}

/* One function is slower: it is the first finding, and the only one. Its callers and siblings owe theirs to it. */
TEST(slower_function)
{
    struct service slower = USUAL;
    struct made m;

    made_init(&m);
    slower.score = 1.25;
    slower.score_name = "app.py:score@99";
    add_services(&m, 10, 10, slower);
    struct comparison c = compared(&m, 10, 10);
    const struct compare_row *first = &c.rows.data[1];
    assert_string_equal(made_name(&c, first), "score");
    assert_int_equal(first->kind, COMPARE_NODE);
    assert_int_equal(first->answer, COMPARE_SLOWER);
    assert_int_equal(first->code, COMPARE_CODE_CHANGED);
    assert_true(first->low < 0.25 && 0.25 < first->high);
    assert_true(fabs(first->old_share - 0.6) < 0.02);
    assert_int_equal(finding_count(&c), 1);
    const struct compare_row *price = made_row(&c, COMPARE_NODE, "price");
    assert_int_equal(price->answer, COMPARE_GAVE_WAY);
    assert_int_equal(price->because, 1);
    assert_true(price->low < 0 && 0 < price->high); /* without score */
    assert_int_equal(made_row(&c, COMPARE_FUNCTION_SELF, "score")->because, 1);
    assert_int_equal(made_row(&c, COMPARE_NODE, "price")->code, COMPARE_CODE_EQUAL);
    comparison_deinit(&c);
    made_deinit(&m);
}

/* More requests of one kind: what they call takes more time, but not more of them. */
TEST(of_callers)
{
    struct service more = USUAL;
    struct made m;

    made_init(&m);
    more.big = 1.8;
    add_services(&m, 10, 10, more);
    struct comparison c = compared(&m, 10, 10);
    const struct compare_row *big = made_row(&c, COMPARE_NODE, "big"), *render = made_row(&c, COMPARE_FUNCTION_SELF, "render");
    assert_int_equal(big->answer, COMPARE_SLOWER);
    assert_int_equal(big->because, COMPARE_NO_ROW);
    assert_int_equal(render->answer, COMPARE_OF_CALLERS);
    assert_ptr_equal(&c.rows.data[render->because], big);
    assert_int_equal(made_row(&c, COMPARE_NODE, "render")->answer, COMPARE_CANNOT_TELL);
    comparison_deinit(&c);
    made_deinit(&m);
}

TEST(new_function)
{
    struct service added = USUAL;
    struct made m;

    made_init(&m);
    added.added = 200;
    add_services(&m, 5, 5, added);
    struct comparison c = compared(&m, 5, 5);
    const struct compare_row *write = made_row(&c, COMPARE_FUNCTION_SELF, "write");
    assert_int_equal(write->match, COMPARE_NEW);
    assert_true(write->low > 0 && write->low < write->change && write->change < write->high && write->high < 0.1);
    assert_true(fabs(write->change - write->new_share) < 1e-12);
    assert_true(write->q < 0.001);
    assert_int_equal(write->answer, COMPARE_OF_CALLERS); /* which is new as well */
    assert_string_equal(made_name(&c, &c.rows.data[write->because]), "audit");
    assert_int_equal(write->because, 1);
    assert_int_equal(made_row(&c, COMPARE_NODE, "render")->answer, COMPARE_OF_CALLEES);
    assert_int_equal(finding_count(&c), 1);
    comparison_deinit(&c);
    made_deinit(&m);

    /* The same from the other side. */
    made_init(&m);
    for (int i = 0; i < 10; i++)
        add_service(&m, "run", i < 5 ? added : USUAL);
    c = compared(&m, 5, 5);
    write = made_row(&c, COMPARE_FUNCTION_SELF, "write");
    assert_int_equal(write->match, COMPARE_VANISHED);
    assert_true(write->change < 0 && write->low < write->change && write->change < write->high && write->high < 0);
    comparison_deinit(&c);
    made_deinit(&m);
}

/* What the new runs alone have counts by what they have of it, if they are three. */
TEST(small_new_function)
{
    struct service added = USUAL;

    added.added = 15;
    for (size_t new = 2; new <= 3; new++) {
        struct made m;
        made_init(&m);
        for (size_t i = 0; i < 10 + new; i++)
            add_service(&m, "run", i < 10 ? USUAL : added);
        struct comparison c = compared(&m, 10, new);
        assert_int_equal(made_find(&c, COMPARE_FUNCTION_SELF, "write") != COMPARE_NO_ROW, new == 3);
        comparison_deinit(&c);
        made_deinit(&m);
    }
}

/* One new run against many old ones. */
TEST(one_new_run)
{
    struct service slower = USUAL;
    struct made m;

    made_init(&m);
    slower.score = 1.6;
    add_services(&m, 10, 1, slower);
    struct comparison c = compared(&m, 10, 1);
    assert_true(c.conclusive);
    assert_string_equal(made_name(&c, &c.rows.data[1]), "score");
    assert_int_equal(c.rows.data[1].answer, COMPARE_SLOWER);
    comparison_deinit(&c);
    made_deinit(&m);
}

/* Of so few runs nothing is concluded, however different they are. */
TEST(too_few)
{
    static const struct {
        size_t old, new;
        bool enough;
    } cases[] = {{1, 1, false}, {3, 1, false}, {2, 2, false}, {2, 3, false}, {3, 3, true}, {5, 1, true}, {1, 5, true}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct service slower = USUAL;
        struct made m;
        made_init(&m);
        slower.score = 3;
        add_services(&m, cases[i].old, cases[i].new, slower);
        struct comparison c = compared(&m, cases[i].old, cases[i].new);
        assert_int_equal(c.conclusive, cases[i].enough);
        assert_int_equal(finding_count(&c) > 0, cases[i].enough);
        assert_int_equal(c.problems.count, !cases[i].enough);
        const struct compare_row *score = made_row(&c, COMPARE_NODE, "score");
        assert_true(score->change > 1);
        assert_int_equal(score->tested, cases[i].old + cases[i].new > 2);
        if (!cases[i].enough) {
            assert_int_equal(c.problems.data[0].kind, COMPARE_FEW);
            assert_int_equal(score->answer, COMPARE_CANNOT_TELL);
        }
        comparison_deinit(&c);
        made_deinit(&m);
    }
}

TEST(work)
{
    struct made m;
    const struct compare_options options = {0};
    struct comparison c;

    made_init(&m);
    add_services(&m, 5, 5, USUAL);
    /* The new runs did half of the work in the same time. */
    for (size_t i = 0; i < 10; i++)
        m.set.runs.data[i].work = i < 5 ? 2000 : 1000;
    c = compared(&m, 5, 5);
    assert_true(c.by_work);
    assert_int_equal(c.rows.data[0].answer, COMPARE_SLOWER);
    assert_true(fabs(c.rows.data[0].change - 1) < 0.1);
    assert_true(fabs(made_row(&c, COMPARE_FUNCTION_SELF, "parse")->change - 1) < 0.1);
    assert_true(fabs(c.rows.data[0].old_value - 4200 * MADE_WEIGHT / 2000) < 0.2e6);
    comparison_deinit(&c);
    /* One does not say it: by size of the run; the total is that of commands. */
    m.set.runs.data[3].work = 0;
    c = compared(&m, 5, 5);
    assert_false(c.by_work);
    assert_true(c.rows.data[0].tested);
    assert_int_equal(c.rows.data[0].answer, COMPARE_CANNOT_TELL);
    comparison_deinit(&c);
    /* Nor did pycap run it. */
    m.set.runs.data[7].has_command = false;
    OK(made_compare(&m, 5, 5, &options, &c));
    assert_false(c.rows.data[0].tested);
    assert_int_equal(c.problems.data[0].kind, COMPARE_NO_WORK);
    comparison_deinit(&c);
    made_deinit(&m);
}

TEST(unlike)
{
    const struct compare_options plain = {0}, forced = {.force = true};
    struct comparison c;
    struct made m;

    made_init(&m);
    add_services(&m, 3, 3, USUAL);
    m.set.runs.data[4].cpu_model = made_text(&m, "Another CPU");
    m.set.runs.data[5].kernel_release = made_text(&m, "6.12.1");
    m.set.runs.data[2].kernel_release = made_text(&m, "6.1.9");
    m.set.runs.data[1].host = made_text(&m, "elsewhere"); /* may differ */
    m.set.runs.data[1].backend = 0;                       /* is not known */
    struct error *err = made_compare(&m, 3, 3, &plain, &c);
    assert_non_null(err);
    assert_int_equal(err->code, ERROR_UNSUPPORTED);
    assert_string_equal(error_text(err), "the captures are not alike (CPU model: A CPU in old-0.bin, Another CPU in new-4.bin; "
                                         "kernel: 6.1 in old-0.bin, 6.12 in new-5.bin)");
    error_destroy(err);
    comparison_deinit(&c);
    OK(made_compare(&m, 3, 3, &forced, &c));
    assert_int_equal(c.problems.count, 2);
    assert_int_equal(c.problems.data[0].kind, COMPARE_UNLIKE);
    assert_true(c.conclusive);
    comparison_deinit(&c);
    /* A run that lost over 1 % says nothing, forced or not, and too few others are left. */
    m.set.runs.data[0].events.data[0].lost = m.set.runs.data[0].events.data[0].ticks / 50;
    OK(made_compare(&m, 3, 3, &forced, &c));
    assert_false(c.conclusive);
    assert_int_equal(c.problems.data[2].kind, COMPARE_LOSSY);
    assert_string_equal(run_set_text_get(&m.set, c.problems.data[2].text), "old-0.bin lost 2.0 % of its samples, over 1 %");
    comparison_deinit(&c);
    made_deinit(&m);
}

/* A run that lost too much is left out where enough others are. */
TEST(lossy)
{
    struct service slower = USUAL;
    struct made m;

    made_init(&m);
    slower.score = 1.5;
    add_services(&m, 5, 5, slower);
    m.set.runs.data[1].events.data[0].lost = m.set.runs.data[1].events.data[0].ticks / 10;
    m.set.runs.data[9].events.data[0].lost = m.set.runs.data[9].events.data[0].ticks / 10;
    struct comparison c = compared(&m, 5, 5);
    assert_true(c.conclusive);
    assert_int_equal(c.problems.count, 2);
    assert_string_equal(run_set_text_get(&m.set, c.problems.data[1].text), "new-9.bin lost 10.0 % of its samples, over 1 %: it is left out");
    assert_int_equal(c.old_runs.count, 4);
    assert_int_equal(c.old_runs.data[1], 2);
    assert_int_equal(c.new_runs.count, 4);
    assert_int_equal(c.factors.count, 8);
    assert_string_equal(made_name(&c, &c.rows.data[1]), "score");
    comparison_deinit(&c);
    made_deinit(&m);
}

/* A run with hardly any samples is left out, too; where all have few it is none. */
TEST(small_run)
{
    for (int all = 0; all < 2; all++) {
        struct made m;

        made_init(&m);
        for (int i = 0; i < 8; i++) {
            bool small = all || i == 3;
            made_samples(&m, "a.py:main;a.py:f", small ? 1 : 600 + i);
            made_samples(&m, "a.py:main;a.py:g", small ? 2 : 900 - i);
            made_run(&m, "run");
        }
        struct comparison c = compared(&m, 4, 4);
        assert_true(c.conclusive);
        assert_int_equal(c.problems.count, !all);
        assert_int_equal(c.old_runs.count, all ? 4 : 3);
        if (!all)
            assert_string_equal(run_set_text_get(&m.set, c.problems.data[0].text), "run has hardly any samples (3): it is left out");
        comparison_deinit(&c);
        /* Without enough others nothing is concluded. */
        OK(made_compare(&m, 4, 1, &(struct compare_options){0}, &c));
        assert_false(c.conclusive);
        comparison_deinit(&c);
        made_deinit(&m);
    }
}

/* Work so small or large that a time divided by it were no number is not known. */
TEST(extreme_work)
{
    static const double works[] = {5e-324, 1e-300, 1e-100, 1, 1e100, 1e308};

    for (size_t k = 0; k < sizeof works / sizeof *works; k++) {
        struct made m;
        made_init(&m);
        add_services(&m, 3, 3, USUAL);
        for (size_t i = 0; i < 6; i++)
            m.set.runs.data[i].work = works[k];
        struct comparison c = compared(&m, 3, 3);
        assert_int_equal(c.by_work, works[k] >= RUN_WORK_LEAST && works[k] <= RUN_WORK_MOST);
        comparison_deinit(&c);
        made_deinit(&m);
    }
}

/* Of two children that alone share their caller's time, the one whose code changed, or whose own time did, is the cause. */
TEST(two_children)
{
    for (int changed = 0; changed < 2; changed++) {
        struct made m;
        made_init(&m);
        for (int i = 0; i < 12; i++) {
            made_samples(&m, i < 6 || !changed ? "a.py:main;a.py:pair;a.py:b@1" : "a.py:main;a.py:pair;a.py:b@2",
                         made_count(&m, i < 6 ? 500 : 1000, 0.01));
            made_samples(&m, "a.py:main;a.py:pair;a.py:a", made_count(&m, 500, 0.01));
            made_samples(&m, "a.py:main;a.py:x", made_count(&m, 2000, 0.01));
            made_samples(&m, "a.py:main;a.py:y", made_count(&m, 2000, 0.01));
            made_run(&m, "run");
        }
        struct comparison c = compared(&m, 6, 6);
        assert_string_equal(made_name(&c, &c.rows.data[1]), "b");
        assert_int_equal(c.rows.data[1].answer, COMPARE_SLOWER);
        assert_int_equal(made_row(&c, COMPARE_NODE, "a")->answer, COMPARE_GAVE_WAY);
        assert_false(made_row(&c, COMPARE_NODE, "a")->tested);
        assert_int_equal(finding_count(&c), 1);
        comparison_deinit(&c);
        made_deinit(&m);
    }
}

TEST(events)
{
    struct compare_options options = {.event = "page-faults"};
    struct comparison c;
    struct made m;

    made_init(&m);
    add_services(&m, 3, 3, USUAL);
    struct error *err = made_compare(&m, 3, 3, &options, &c);
    assert_non_null(err);
    assert_string_equal(error_text(err), "old-0.bin has no samples of the event page-faults");
    error_destroy(err);
    comparison_deinit(&c);
    m.set.runs.data[4].events.data[0].name = made_text(&m, "page-faults");
    options.event = NULL;
    err = made_compare(&m, 3, 3, &options, &c);
    assert_non_null(err);
    assert_string_equal(error_text(err), "the captures have no event in common that has samples in all of them");
    error_destroy(err);
    comparison_deinit(&c);
    made_deinit(&m);
}

static bool ignore_price(void *ctx, const char *file, const char *function)
{
    (void)ctx;
    return !strcmp(file, "app.py") && !strcmp(function, "price");
}

TEST(ignored)
{
    const struct compare_options options = {.is_ignored = ignore_price};
    struct comparison c;
    struct made m;

    made_init(&m);
    add_services(&m, 3, 3, USUAL);
    OK(made_compare(&m, 3, 3, &options, &c));
    assert_int_equal(made_find(&c, COMPARE_NODE, "price"), COMPARE_NO_ROW);
    assert_int_equal(made_find(&c, COMPARE_FUNCTION_SELF, "price"), COMPARE_NO_ROW);
    assert_int_not_equal(made_find(&c, COMPARE_NODE, "score"), COMPARE_NO_ROW);
    comparison_deinit(&c);
    made_deinit(&m);
}

/* A chain of calls that do nothing else is one row, of its innermost function. */
TEST(chain)
{
    struct made m;

    made_init(&m);
    for (int i = 0; i < 20; i++) {
        made_samples(&m, "a.py:main;a.py:wrap;a.py:wrapped;a.py:work", made_count(&m, i < 10 ? 500 : 650, 0.01));
        made_samples(&m, "a.py:main;a.py:wrap;a.py:wrapped", made_count(&m, 2, 0.01));
        made_samples(&m, "a.py:main;a.py:other", made_count(&m, 900, 0.01));
        made_samples(&m, "a.py:main;a.py:more", made_count(&m, 700, 0.01));
        made_run(&m, "run");
    }
    struct comparison c = compared(&m, 10, 10);
    const struct compare_row *first = &c.rows.data[1];
    assert_string_equal(made_name(&c, first), "work");
    assert_int_equal(first->kind, COMPARE_NODE);
    assert_string_equal(run_set_text_get(&m.set, m.set.functions.data[m.set.nodes.data[first->within].function].name), "main");
    assert_int_equal(made_find(&c, COMPARE_NODE, "wrap"), COMPARE_NO_ROW);
    assert_int_equal(made_row(&c, COMPARE_FUNCTION_TOTAL, "wrap")->answer, COMPARE_OF_CALLEES);
    assert_int_equal(made_row(&c, COMPARE_FUNCTION_TOTAL, "wrap")->because, 1);
    assert_int_equal(finding_count(&c), 1);
    comparison_deinit(&c);
    made_deinit(&m);
}

/* The own time of a function that calls others. */
TEST(slower_self)
{
    struct made m;

    made_init(&m);
    for (int i = 0; i < 20; i++) {
        made_samples(&m, i < 10 ? "a.py:main;a.py:f@1" : "a.py:main;a.py:f@2", made_count(&m, i < 10 ? 400 : 520, 0.01));
        made_samples(&m, "a.py:main;a.py:f;a.py:g", made_count(&m, 500, 0.01));
        made_samples(&m, "a.py:main;a.py:x", made_count(&m, 800, 0.01));
        made_samples(&m, "a.py:main;b.py:y", made_count(&m, 800, 0.01));
        made_run(&m, "run");
    }
    struct comparison c = compared(&m, 10, 10);
    const struct compare_row *first = &c.rows.data[1];
    assert_string_equal(made_name(&c, first), "f");
    assert_int_equal(first->kind, COMPARE_NODE_SELF);
    assert_int_equal(made_row(&c, COMPARE_NODE, "f")->answer, COMPARE_OF_CALLEES);
    assert_int_equal(made_row(&c, COMPARE_NODE, "g")->answer, COMPARE_GAVE_WAY);
    assert_int_equal(finding_count(&c), 1);
    comparison_deinit(&c);
    made_deinit(&m);
}

/* The same runs give the same rows in the same order, however things are numbered. */
TEST(order)
{
    struct comparison c[2];
    struct made m[2];

    for (int k = 0; k < 2; k++) {
        static const char *const stacks[] = {"a.py:main;a.py:f", "a.py:main;b.py:f", "a.py:main;a.py:g", "a.py:main;a.py:h"};
        made_init(&m[k]);
        for (int run = 0; run < 6; run++) {
            for (int i = 0; i < 4; i++) {
                int at = k ? 3 - i : i;
                made_samples(&m[k], stacks[at], at < 2 ? 300 + run : 100 + 7 * ((run * 5 + at) % 6)); /* the first two are alike */
            }
            made_run(&m[k], "run");
        }
        c[k] = compared(&m[k], 3, 3);
    }
    assert_int_equal(c[0].rows.count, c[1].rows.count);
    for (size_t i = 0; i < c[0].rows.count; i++) {
        const struct compare_row *a = &c[0].rows.data[i], *b = &c[1].rows.data[i];
        assert_int_equal(a->kind, b->kind);
        assert_string_equal(made_name(&c[0], a), made_name(&c[1], b));
        if (a->function != RUN_SET_NONE)
            assert_string_equal(run_set_text_get(&m[0].set, m[0].set.functions.data[a->function].file),
                                run_set_text_get(&m[1].set, m[1].set.functions.data[b->function].file));
    }
    for (int k = 0; k < 2; k++) {
        comparison_deinit(&c[k]);
        made_deinit(&m[k]);
    }
}
