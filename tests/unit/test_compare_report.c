/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison in words and for programs. The comparisons are made by hand: what they say is not computed here. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "formats/compare/report.h"
#include "tests/unit/test.h"

enum { OLD_RUNS = 2, NEW_RUNS = 2 };

struct scene {
    struct run_set set;
    struct comparison comparison;
    struct report report;
    struct gate_result results[4];
};

static uint32_t text_number(struct scene *s, const char *text)
{
    return run_set_text(&s->set, text, strlen(text));
}

static uint32_t function_number(struct scene *s, const char *file, const char *name, uint32_t line)
{
    return run_set_function(&s->set, &(struct run_function){text_number(s, file), text_number(s, name), line});
}

static struct compare_row *add_row(struct scene *s, const struct compare_row *row)
{
    assert_true(VEC_PUSH(&s->comparison.rows, *row));
    return &s->comparison.rows.data[s->comparison.rows.count - 1];
}

/* A row that is tested, of a function; +10 % (4 to 17). */
static struct compare_row row_of(enum compare_kind kind, uint32_t function, uint32_t node)
{
    return (struct compare_row){.kind = kind,
                                .function = function,
                                .node = node,
                                .line = RUN_SET_NONE,
                                .module = RUN_SET_NONE,
                                .within = node == RUN_SET_NONE ? RUN_SET_NONE : 1,
                                .old_function = RUN_SET_NONE,
                                .because = COMPARE_NO_ROW,
                                .old_share = 0.629,
                                .new_share = 0.662,
                                .change = 0.10,
                                .low = 0.04,
                                .high = 0.17,
                                .p = 0.0001,
                                .q = 0.003,
                                .df = 20,
                                .error = 0.03,
                                .tested = true};
}

static void add_run(struct scene *s, bool is_old)
{
    struct run *run = run_set_add(&s->set);
    struct run_event event = {.name = text_number(s, "cpu-clock"), .unit = text_number(s, "ns"), .kind = EVENT_CPU_TIME, .samples = 100,
                              .total = 1e9, .weight = 1e7};

    assert_non_null(run);
    run->programs = text_number(s, "shop");
    for (uint32_t node = 1; node < s->set.nodes.count; node++)
        assert_true(VEC_PUSH(&event.nodes, ((struct run_cell){.id = node, .self = 1e6 * node * (is_old ? 1 : 2), .total = 1e6 * node})));
    assert_true(VEC_PUSH(&run->events, event));
    uint32_t number = (uint32_t)s->set.runs.count - 1;
    assert_true(is_old ? VEC_PUSH(&s->comparison.old_runs, number) : VEC_PUSH(&s->comparison.new_runs, number));
    assert_true(VEC_PUSH(&s->comparison.factors, 1.0));
}

/* serve calls small, which calls score and price; the total cannot be told. `name` is that of score. */
static void setup(struct scene *s, const char *name)
{
    *s = (struct scene){.report = {.exporter = "pysym", .top_count = 10}};
    assert_true(run_set_init(&s->set, NULL));
    uint32_t serve = function_number(s, "/srv/site-packages/shop/app.py", "serve", 5);
    uint32_t score = function_number(s, "/srv/site-packages/shop/app.py", name, 12);
    uint32_t price = function_number(s, "/srv/site-packages/shop/app.py", "price", 30);
    uint32_t top = run_set_node(&s->set, RUN_SET_ROOT, serve);
    uint32_t score_node = run_set_node(&s->set, top, score), price_node = run_set_node(&s->set, top, price);
    for (int i = 0; i < OLD_RUNS + NEW_RUNS; i++)
        add_run(s, i < OLD_RUNS);
    struct comparison *c = &s->comparison;
    c->set = &s->set;
    c->event = text_number(s, "cpu-clock");
    c->unit = text_number(s, "ns");
    c->kind = EVENT_CPU_TIME;
    c->conclusive = true;
    c->tested_rows = 3;
    struct compare_row row = row_of(COMPARE_TOTAL, RUN_SET_NONE, RUN_SET_NONE);
    row.change = 0.006, row.low = -0.12, row.high = 0.15, row.runs_needed = 1600, row.error = 0.2;
    add_row(s, &row);
    row = row_of(COMPARE_NODE, score, score_node);
    row.answer = COMPARE_SLOWER, row.code = COMPARE_CODE_CHANGED;
    add_row(s, &row);
    row = row_of(COMPARE_NODE, price, price_node);
    row.answer = COMPARE_GAVE_WAY, row.because = 1, row.change = -0.02, row.low = -0.05, row.high = 0.01;
    add_row(s, &row);
    s->report.comparison = c;
    s->report.results = s->results;
}

static void teardown(struct scene *s)
{
    comparison_deinit(&s->comparison);
    run_set_deinit(&s->set);
}

/* The caller frees it. */
static char *written(const struct scene *s, const char *format)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    const struct report_format *f = report_format_find(format);

    assert_non_null(out);
    assert_non_null(f);
    assert_null(f->write(&s->report, out));
    assert_int_equal(fclose(out), 0);
    return text;
}

static void expect(const struct scene *s, const char *format, const char *expected)
{
    char *text = written(s, format);

    assert_string_equal(text, expected);
    free(text);
}

static void expect_part(const struct scene *s, const char *format, const char *part)
{
    char *text = written(s, format);

    if (!strstr(text, part))
        assert_string_equal(text, part);
    free(text);
}

#define MINUS "\xe2\x88\x92"
#define ARROW "\xe2\x86\x92"

TEST(text)
{
    struct scene s;

    setup(&s, "score");
    expect(&s, "text",
           "2 old and 2 new runs of shop: cpu-clock, CPU time\n"
           "\n"
           "cannot tell: the total: +1 % time (90 % interval " MINUS "12 to +15); runs differ by 22 %; it would take over 1,000 runs a side\n"
           "  slower: score (shop/app.py:12), under serve: 62.9 " ARROW " 66.2 % of its caller, +10 % time (90 % interval +4 to +17), "
           "q 0.003; its code changed\n"
           "      gave way: price (shop/app.py:30), under serve\n"
           "\n"
           "Judged by run, not by sample: 3 rows tested, one correction over all of them. q: the share of "
           "false findings to expect among those up to this one; intervals hold the true change in 90 % of all cases.\n");
    teardown(&s);
}

/* With nothing found, nothing is claimed to be the same. */
TEST(nothing_found)
{
    struct scene s;

    setup(&s, "score");
    s.comparison.rows.count = 1;
    expect_part(&s, "text", "\n  No function, call or line has surely changed.\n");
    expect_part(&s, "markdown", "**nothing is known to have changed**\n");
    s.comparison.conclusive = false;
    expect_part(&s, "text", "Nothing can be concluded from these runs");
    expect_part(&s, "markdown", "**nothing can be concluded from so few runs**\n");
    teardown(&s);
}

TEST(rules)
{
    struct scene s;

    setup(&s, "score");
    s.results[0] = (struct gate_result){.rule = "function *:score 5%", .origin = "budget:3", .answer = GATE_BROKEN, .row = 1, .limit = 0.05,
                                        .change = 0.1, .low = 0.06, .high = 0.14};
    s.results[1] = (struct gate_result){.rule = "total 2%", .origin = "--fail-on", .answer = GATE_UNDECIDED, .row = 0, .limit = 0.02,
                                        .change = 0.006, .low = -0.12, .high = 0.15, .runs_needed = 1600};
    s.results[2] = (struct gate_result){.rule = "new 1%", .origin = "--fail-on", .answer = GATE_KEPT, .row = COMPARE_NO_ROW};
    s.report.result_count = 3;
    expect_part(&s, "text",
                "\nRules:\n"
                "  broken     function *:score 5% (budget:3): score (shop/app.py:12), under serve +10.0 % (+6.0 to +14.0)\n"
                "  undecided  total 2% (--fail-on): the total +1 % (" MINUS "12 to +15); it would take over 1,000 runs a side\n"
                "  kept       new 1% (--fail-on): nothing that it names was recorded\n");
    expect_part(&s, "markdown", "**1 rule is broken; 1 rule is undecided; 1 row is surely slower**\n");
    expect_part(&s, "github", "::error file=shop/app.py,line=12,title=rule broken::function *:score 5%25: score (shop/app.py:12), under serve "
                              "+10.0 %25 (+6.0 to +14.0)\n");
    expect_part(&s, "junit", "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\"");
    expect_part(&s, "junit", "name=\"total 2%\">\n      <skipped message=\"undecided: the total");
    s.report.undecided_fails = true;
    expect_part(&s, "junit", "tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\"");
    teardown(&s);
}

/* What is new has no change, but a share. */
TEST(new)
{
    struct scene s;

    setup(&s, "score");
    struct compare_row *row = &s.comparison.rows.data[1];
    row->kind = COMPARE_FUNCTION_SELF, row->node = row->within = RUN_SET_NONE, row->match = COMPARE_NEW;
    row->old_share = 0, row->new_share = row->change = 0.05, row->low = 0.041, row->high = 0.059;
    s.results[0] = (struct gate_result){.rule = "new 1%", .origin = "--fail-on", .answer = GATE_BROKEN, .row = 1, .limit = 0.01,
                                        .change = 0.05, .low = 0.038, .high = 0.06};
    s.report.result_count = 1;
    expect_part(&s, "text", "\n  new: score (shop/app.py:12): 5.0 % of all, 90 % interval 4.1 to 5.9, q 0.003");
    expect_part(&s, "text", "new 1% (--fail-on): score (shop/app.py:12) 5.0 % of all (3.8 to 6.0)\n");
    expect_part(&s, "markdown", "| new | `score (shop/app.py:12)` | 5.0 % of all | 4.1 to 5.9 % of all |");
    teardown(&s);
}

/* Comments on GitHub are short: what does not fit is counted. */
TEST(long_markdown)
{
    struct scene s;

    setup(&s, "score");
    for (int i = 0; i < 200; i++)
        add_row(&s, &(struct compare_row){.kind = COMPARE_FUNCTION_SELF, .function = 1, .node = RUN_SET_NONE, .line = RUN_SET_NONE,
                                          .module = RUN_SET_NONE, .within = RUN_SET_NONE, .old_function = RUN_SET_NONE,
                                          .because = COMPARE_NO_ROW});
    expect_part(&s, "markdown", "\n- and 103 rows more: `-f json` has all\n\n</details>\n");
    teardown(&s);
}

/* As what is given to flamegraph.pl: microseconds of own time, old and new. */
TEST(folded)
{
    struct scene s;

    setup(&s, "score");
    expect(&s, "folded", "serve 1000 2000\nserve;score 2000 4000\nserve;price 3000 6000\n");
    s.comparison.factors.data[2] = s.comparison.factors.data[3] = 3; /* the new runs did three times as much: sums are of two */
    expect(&s, "folded", "serve 2000 1333\nserve;score 4000 2667\nserve;price 6000 4000\n");
    teardown(&s);
}

TEST(json)
{
    struct scene s;
    json_error_t error;

    setup(&s, "score");
    s.comparison.rows.data[0].runs_needed = INFINITY;
    char *text = written(&s, "json");
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    assert_non_null(root);
    json_t *rows = json_object_get(root, "rows"), *row = json_array_get(rows, 1);
    assert_int_equal(json_array_size(rows), 3);
    assert_string_equal(json_string_value(json_object_get(row, "kind")), "node");
    assert_string_equal(json_string_value(json_object_get(row, "function")), "score");
    assert_string_equal(json_string_value(json_array_get(json_object_get(row, "path"), 0)), "serve");
    assert_int_equal(json_array_size(json_object_get(row, "path")), 2);
    assert_true(json_real_value(json_object_get(row, "change")) == 0.10);
    assert_true(json_is_null(json_object_get(row, "because")));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(rows, 2), "because")), 1);
    assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "runs_needed")));
    assert_int_equal(json_array_size(json_object_get(root, "runs")), OLD_RUNS + NEW_RUNS);
    json_decref(root);
    free(text);
    teardown(&s);
}

/* Whatever a program calls its functions, a report stays what it is. */
TEST(hostile_names)
{
    static const char name[] = "a`b``c|d</system-out>::error::\n\x1b[31m%0A<!--\xe2\x80\xae@everyone";
    struct scene s;
    json_error_t error;

    setup(&s, name);
    for (const struct report_format *const *f = report_formats; *f; f++) {
        char *text = written(&s, (*f)->name);
        assert_null(strchr(text, '\x1b'));
        assert_null(strstr(text, "\xe2\x80\xae"));
        if (!strcmp((*f)->name, "json")) {
            json_t *root = json_loads(text, 0, &error);
            assert_non_null(root);
            json_decref(root);
        }
        free(text);
    }
    char *text = written(&s, "github");
    assert_ptr_equal(strstr(text, "::warning"), text);
    assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
    assert_null(strstr(text, "%0A<"));
    free(text);
    text = written(&s, "junit");
    char *end = strstr(text, "</system-out>");
    assert_non_null(end);
    assert_null(strstr(end + 1, "</system-out>"));
    free(text);
    expect_part(&s, "markdown", "| slower | ``` a`b``c\\|d<"); /* in a fence that is longer than what is in it */
    expect_part(&s, "markdown", "\n- ``` slower: a`b``c|d<"); /* lists have no columns */
    teardown(&s);
}
