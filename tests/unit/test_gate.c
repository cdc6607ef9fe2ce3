/* SPDX-License-Identifier: Apache-2.0 */
/* Rules judged by a comparison: which rows they mean, how sure they have to be, and what is said where nothing can be. */
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

#include "formats/compare/gate.h"
#include "formats/stats/student.h"

/* main calls serve, which calls small and large; large calls small, too. In the files app/main.py and lib/db.py. */
enum { MAIN, SERVE, SMALL, LARGE, FRESH, FUNCTIONS };
enum { NODE_MAIN = 1, NODE_SERVE, NODE_SMALL, NODE_LARGE, NODE_LARGE_SMALL };

struct scene {
    struct run_set set;
    struct comparison c;
    struct gate *gate;
    const struct gate_result *results;
    size_t count;
};

static uint32_t text(struct scene *s, const char *t)
{
    return run_set_text(&s->set, t, strlen(t));
}

static void init(struct scene *s, size_t old_runs, size_t new_runs)
{
    static const char *const names[FUNCTIONS] = {"main", "serve", "Cart.small", "large", "fresh"};
    static const uint32_t nodes[][2] = {{RUN_SET_ROOT, MAIN}, {NODE_MAIN, SERVE}, {NODE_SERVE, SMALL}, {NODE_SERVE, LARGE}, {NODE_LARGE, SMALL}};

    *s = (struct scene){.gate = gate_create()};
    assert_true(run_set_init(&s->set, NULL));
    for (uint32_t f = 0; f < FUNCTIONS; f++) {
        struct run_function function = {.file = text(s, f < SMALL ? "/srv/app/main.py" : "/srv/lib/db.py"), .name = text(s, names[f])};
        assert_int_equal(run_set_function(&s->set, &function), f);
    }
    for (uint32_t n = 0; n < sizeof nodes / sizeof *nodes; n++)
        assert_int_equal(run_set_node(&s->set, nodes[n][0], nodes[n][1]), n + 1);
    s->c = (struct comparison){.set = &s->set, .conclusive = true, .kind = EVENT_CPU_TIME, .by_work = true};
    for (size_t i = 0; i < old_runs; i++)
        assert_true(VEC_PUSH(&s->c.old_runs, (uint32_t)i));
    for (size_t i = 0; i < new_runs; i++)
        assert_true(VEC_PUSH(&s->c.new_runs, (uint32_t)(old_runs + i)));
}

static void deinit(struct scene *s)
{
    VEC_DEINIT(&s->c.old_runs);
    VEC_DEINIT(&s->c.new_runs);
    VEC_DEINIT(&s->c.rows);
    VEC_DEINIT(&s->c.problems);
    gate_destroy(s->gate);
    run_set_deinit(&s->set);
}

/* A row of `kind` with a change of which the standard error, on the log scale, is `error`; 10 ms in all. */
static void add(struct scene *s, enum compare_kind kind, uint32_t node, uint32_t function, double change, double error)
{
    struct compare_row row = {.kind = kind,
                              .node = node,
                              .function = function,
                              .line = RUN_SET_NONE,
                              .module = kind == COMPARE_MODULE ? text(s, "/srv/lib/db.py") : RUN_SET_NONE,
                              .old_function = RUN_SET_NONE,
                              .because = COMPARE_NO_ROW,
                              .old_value = 1e7,
                              .new_value = 1e7,
                              .change = change,
                              .error = error,
                              .df = 18,
                              .tested = true};

    assert_true(VEC_PUSH(&s->c.rows, row));
}

static void add_node(struct scene *s, uint32_t node, double change, double error)
{
    add(s, COMPARE_NODE, node, s->set.nodes.data[node].function, change, error);
}

static void judge(struct scene *s, const char *rule)
{
    OK(gate_add(s->gate, rule, "--fail-on"));
    OK(gate_judge(s->gate, &s->c, &s->results, &s->count));
}

static const struct gate_result *last(const struct scene *s)
{
    return &s->results[s->count - 1];
}

static enum gate_answer answer(struct scene *s, const char *rule)
{
    judge(s, rule);
    return last(s)->answer;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* One row: broken when the lower bound at 5 % is over the limit, kept when the upper one is below it. */
TEST(total)
{
    double t = student_quantile(0.05, 18);
    struct scene s;

    init(&s, 10, 10);
    add(&s, COMPARE_TOTAL, RUN_SET_NONE, RUN_SET_NONE, expm1(log1p(0.02) + 1.01 * t * 0.01), 0.01);
    assert_int_equal(answer(&s, "total 2%"), GATE_BROKEN);
    assert_int_equal(last(&s)->row, 0);
    assert_true(is_near(last(&s)->low, expm1(log1p(0.02) + 0.01 * t * 0.01)));
    assert_true(last(&s)->runs_needed == 0);
    s.c.rows.data[0].change = expm1(log1p(0.02) + 0.99 * t * 0.01);
    assert_int_equal(answer(&s, "total 2%"), GATE_UNDECIDED);
    assert_true(last(&s)->runs_needed >= 3);
    assert_string_equal(last(&s)->reason, "");
    s.c.rows.data[0].change = expm1(log1p(0.02) - 0.99 * t * 0.01);
    assert_int_equal(answer(&s, "total 2%"), GATE_UNDECIDED);
    s.c.rows.data[0].change = expm1(log1p(0.02) - 1.01 * t * 0.01);
    assert_int_equal(answer(&s, "total 2%"), GATE_KEPT);
    assert_true(is_near(last(&s)->high, expm1(log1p(0.02) - 0.01 * t * 0.01)));
    assert_int_equal(s.count, 4);
    deinit(&s);
}

/* A look is stricter than the only one; `alpha` says how strict that is. */
TEST(levels)
{
    struct scene s;

    init(&s, 10, 10);
    add(&s, COMPARE_TOTAL, RUN_SET_NONE, RUN_SET_NONE, expm1(log1p(0.02) + 2 * 0.01), 0.01);
    assert_int_equal(answer(&s, "total 2%"), GATE_BROKEN);
    OK(gate_set_look(s.gate, 1, 5));
    OK(gate_judge(s.gate, &s.c, &s.results, &s.count));
    assert_int_equal(last(&s)->answer, GATE_UNDECIDED);
    OK(gate_set_look(s.gate, 1, 1));
    OK(gate_add(s.gate, "alpha 0.01", "b:1"));
    OK(gate_judge(s.gate, &s.c, &s.results, &s.count));
    assert_int_equal(last(&s)->answer, GATE_UNDECIDED);
    deinit(&s);
}

/* Which rows a rule means, told by which of them breaks it. */
TEST(meant)
{
    static const char *const rules[] = {"function small 5%", "function Cart.* 5%", "function db.py:small 5%", "function lib.db:* 5%",
                                        "node serve;small 5%", "node main;serve;small 5%", "node main.py:serve;db.py:small 5%"};
    static const char *const others[] = {"function main.py:small 5%", "function large 5%", "node large;small 5%", "node main;small 5%",
                                         "node serve 5%", "node x;main;serve;small 5%", "function fresh 5%"};
    struct scene s;

    init(&s, 10, 10);
    add_node(&s, NODE_SERVE, 0, 0.01);
    add_node(&s, NODE_SMALL, 0.2, 0.01);
    add_node(&s, NODE_LARGE, 0, 0.01);
    add_node(&s, NODE_LARGE_SMALL, 0, 0.01);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        assert_int_equal(answer(&s, rules[i]), GATE_BROKEN);
        assert_int_equal(last(&s)->row, 1);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_not_equal(answer(&s, others[i]), GATE_BROKEN);
    deinit(&s);
}

/* Of many rows each may be over a limit by chance: together they fail no more often than one. */
TEST(several_rows)
{
    double over = student_quantile(0.03, 18) * 0.01; /* over the limit at 5 %, but not at 5 % of two rows */
    struct scene s;

    init(&s, 10, 10);
    add_node(&s, NODE_SMALL, expm1(log1p(0.05) + over), 0.01);
    assert_int_equal(answer(&s, "function small 5%"), GATE_BROKEN);
    add_node(&s, NODE_LARGE_SMALL, -0.1, 0.01);
    assert_int_equal(answer(&s, "function small 5%"), GATE_UNDECIDED);
    assert_int_equal(last(&s)->row, 0);
    s.c.rows.data[0].change = -0.05;
    assert_int_equal(answer(&s, "function small 5%"), GATE_KEPT);
    assert_int_equal(last(&s)->row, 0); /* nearer to the limit than the other */
    deinit(&s);
}

/* A function's total is judged only where its nodes are less than half of it. */
TEST(total_of_a_function)
{
    struct scene s;

    init(&s, 10, 10);
    add(&s, COMPARE_FUNCTION_TOTAL, RUN_SET_NONE, SMALL, 0.3, 0.01);
    assert_int_equal(answer(&s, "function small 5%"), GATE_BROKEN);
    add_node(&s, NODE_SMALL, 0, 0.01);
    s.c.rows.data[1].old_value = s.c.rows.data[1].new_value = 4e6;
    assert_int_equal(answer(&s, "function small 5%"), GATE_BROKEN);
    s.c.rows.data[1].old_value = s.c.rows.data[1].new_value = 5e6;
    assert_int_equal(answer(&s, "function small 5%"), GATE_KEPT);
    deinit(&s);
}

TEST(files)
{
    struct scene s;

    init(&s, 10, 10);
    add(&s, COMPARE_MODULE, RUN_SET_NONE, RUN_SET_NONE, 0.2, 0.01);
    assert_int_equal(answer(&s, "file lib/* 5%"), GATE_BROKEN);
    assert_int_equal(answer(&s, "file ~/lib/ 5%"), GATE_BROKEN);
    assert_int_equal(answer(&s, "file app/* 5%"), GATE_UNDECIDED);
    assert_string_equal(last(&s)->reason, "no file of that name has enough samples in old and new runs");
    deinit(&s);
}

/* New functions are judged by their share, and only by the rule for them. */
TEST(new)
{
    struct scene s;

    init(&s, 10, 10);
    assert_int_equal(answer(&s, "new 1%"), GATE_KEPT);
    assert_int_equal(last(&s)->row, COMPARE_NO_ROW);
    assert_string_equal(last(&s)->reason, "nothing is new that has enough samples");
    add(&s, COMPARE_FUNCTION_SELF, RUN_SET_NONE, FRESH, 0.02, 0.001);
    s.c.rows.data[0].match = COMPARE_NEW;
    assert_int_equal(answer(&s, "new 1%"), GATE_BROKEN);
    assert_true(is_near(last(&s)->low, 0.02 - 0.001 * student_quantile(0.05, 18)));
    assert_int_equal(answer(&s, "new 2%"), GATE_UNDECIDED);
    assert_int_equal(answer(&s, "new 3%"), GATE_KEPT);
    add(&s, COMPARE_FUNCTION_TOTAL, RUN_SET_NONE, FRESH, 0.5, 0.001);
    s.c.rows.data[1].match = COMPARE_NEW;
    assert_int_equal(answer(&s, "new 3%"), GATE_KEPT);
    assert_int_equal(answer(&s, "function fresh 5%"), GATE_UNDECIDED);
    assert_string_equal(last(&s)->reason, "no function of that name has enough samples in old and new runs");
    deinit(&s);
}

static void add_problem(struct scene *s, enum compare_problem_kind kind, const char *what)
{
    struct compare_problem problem = {kind, text(s, what)};

    assert_true(VEC_PUSH(&s->c.problems, problem));
}

TEST(reasons)
{
    struct scene s;

    init(&s, 3, 4);
    add(&s, COMPARE_TOTAL, RUN_SET_NONE, RUN_SET_NONE, 1, 0.01);
    OK(gate_add(s.gate, "runs 3 5", "b:1"));
    assert_int_equal(answer(&s, "total 2%"), GATE_UNDECIDED);
    assert_string_equal(last(&s)->reason, "3 old and 4 new runs: the rules ask for 3 and 5");
    OK(gate_add(s.gate, "runs 3 4", "b:2"));
    assert_int_equal(answer(&s, "total 2%"), GATE_BROKEN);
    add_problem(&s, COMPARE_LOSSY, "new2.bin lost 3 % of its ticks");
    assert_int_equal(answer(&s, "total 2%"), GATE_BROKEN); /* by the runs that are left */
    s.c.conclusive = false;
    assert_int_equal(answer(&s, "total 2%"), GATE_UNDECIDED);
    assert_string_equal(last(&s)->reason, "new2.bin lost 3 % of its ticks");
    s.c.conclusive = true;
    s.c.problems.data[0].kind = COMPARE_UNLIKE; /* and forced */
    assert_int_equal(answer(&s, "total 2%"), GATE_BROKEN);
    s.c.problems.data[0].kind = COMPARE_NO_WORK;
    s.c.rows.data[0].tested = false;
    assert_int_equal(answer(&s, "total 2%"), GATE_UNDECIDED);
    assert_string_equal(last(&s)->reason, "new2.bin lost 3 % of its ticks");
    s.c.conclusive = false;
    assert_int_equal(answer(&s, "new 2%"), GATE_UNDECIDED);
    assert_string_equal(last(&s)->reason, "nothing can be concluded from so few runs");
    deinit(&s);
}

/* No number of a result is a NaN, whatever the rows are. */
TEST(extremes)
{
    static const double changes[] = {-1, -0.999999, 0, 1e300}, errors[] = {0, 1e-300, 1, 1e300};
    struct scene s;

    init(&s, 3, 3);
    add(&s, COMPARE_TOTAL, RUN_SET_NONE, RUN_SET_NONE, 0, 0);
    for (int i = 0; i < 16; i++) {
        s.c.rows.data[0].change = changes[i % 4];
        s.c.rows.data[0].error = errors[i / 4];
        judge(&s, i % 2 ? "total 0%" : "total 10000%");
        assert_false(isnan(last(&s)->low) || isnan(last(&s)->high) || isnan(last(&s)->runs_needed));
        s.c.rows.data[0].df = i % 2 ? INFINITY : 0;
    }
    deinit(&s);
}

/* Whether a rule that a trace's names make expensive ends at the limit of work. */
TEST(limits)
{
    struct limits limits = {.memory_max = 1 << 30, .work_max = 100};
    const struct gate_result *results;
    struct scene s;
    size_t count;

    init(&s, 3, 3);
    s.set.limits = &limits;
    OK(gate_add(s.gate, "function * 5%", "--fail-on"));
    struct error *err = gate_judge(s.gate, &s.c, &results, &count);
    assert_non_null(err);
    assert_true(limits.exceeded);
    assert_int_equal(count, 0);
    error_destroy(err);
    s.set.limits = NULL;
    deinit(&s);
}
