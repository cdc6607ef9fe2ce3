/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges rules by the rows of a comparison.
 *
 * A rule is one test, however many rows it means. It is broken if a row is surely over the limit: one-sided, and as each of
 * m rows may err, at alpha / m (Bonferroni). It is kept if all rows surely are not: that needs no such care, since for a
 * wrong answer every row would have to err. Else the runs do not tell.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/buf.h"
#include "formats/compare/gate_state.h"
#include "formats/stats/estimate.h"
#include "formats/stats/runs_needed.h"
#include "formats/stats/spending.h"

struct judge {
    const struct comparison *c;
    const struct gate *g;
    double alpha;           /* of this look */
    bool *has_nodes;        /* by function: nodes stand for it, see find_nodes() */
    bool *meant;            /* by function: the rule at hand means it */
    VEC(uint32_t) rows;     /* that the rule at hand means */
};

static const char *text_of(const struct comparison *c, uint32_t text)
{
    return text == RUN_SET_NONE ? "" : run_set_text_get(c->set, text);
}

/* ---- what a rule means ---- */

/*
 * A function is judged by its nodes, which say most; by its total only where the nodes that can be tested are less than half
 * of it, as with functions that are called from everywhere.
 */
static bool find_nodes(struct judge *j)
{
    const struct comparison *c = j->c;
    double *of_nodes = calloc(c->set->functions.count + 1, sizeof *of_nodes);

    for (size_t i = 0; of_nodes && i < c->rows.count; i++) {
        const struct compare_row *row = &c->rows.data[i];
        if (row->kind == COMPARE_NODE && row->tested)
            of_nodes[row->function] += fmax(row->old_value, row->new_value);
    }
    for (size_t i = 0; of_nodes && i < c->rows.count; i++) {
        const struct compare_row *row = &c->rows.data[i];
        if (row->kind == COMPARE_FUNCTION_TOTAL)
            j->has_nodes[row->function] = 2 * of_nodes[row->function] >= fmax(row->old_value, row->new_value);
    }
    free(of_nodes);
    return of_nodes;
}

/* Is the node of such a function below such callers? The node itself is the last of the patterns. */
static bool is_node(const struct run_set *set, uint32_t node, const struct rule *rule)
{
    for (size_t i = rule->patterns.count; i-- > 0;) {
        if (node == RUN_SET_NONE || node == RUN_SET_ROOT)
            return false;
        const struct run_function *f = &set->functions.data[set->nodes.data[node].function];
        if (!name_pattern_matches(rule->patterns.data[i], run_set_text_get(set, f->file), run_set_text_get(set, f->name)))
            return false;
        node = set->nodes.data[node].parent;
    }
    return true;
}

static bool is_meant(const struct judge *j, const struct rule *rule, const struct compare_row *row)
{
    bool is_old = row->match != COMPARE_NEW && row->match != COMPARE_VANISHED;

    switch (rule->kind) {
    case RULE_TOTAL:
        return row->kind == COMPARE_TOTAL;
    case RULE_FUNCTION:
        if (row->kind == COMPARE_FUNCTION_TOTAL && j->has_nodes[row->function])
            return false;
        return is_old && (row->kind == COMPARE_NODE || row->kind == COMPARE_FUNCTION_TOTAL) && j->meant[row->function];
    case RULE_FILE:
        return is_old && row->kind == COMPARE_MODULE && name_pattern_matches_file(rule->patterns.data[0], text_of(j->c, row->module));
    case RULE_NODE:
        return is_old && row->kind == COMPARE_NODE && is_node(j->c->set, row->node, rule);
    case RULE_NEW:
        return row->kind == COMPARE_FUNCTION_SELF && row->match == COMPARE_NEW;
    }
    return false;
}

/* Counts the work of looking at all names for a rule: a pattern may take time with the product of both lengths. */
static bool take_work(const struct judge *j, const struct rule *rule)
{
    const struct run_set *set = j->c->set;

    return limits_work(set->limits, (set->functions.count + j->c->rows.count) * (16 + strlen(rule->text)));
}

static struct error *find_rows(struct judge *j, const struct rule *rule)
{
    const struct run_set *set = j->c->set;

    j->rows.count = 0;
    if (!take_work(j, rule))
        return error_no_memory();
    for (size_t i = 0; rule->kind == RULE_FUNCTION && i < set->functions.count; i++) {
        const struct run_function *f = &set->functions.data[i];
        j->meant[i] = name_pattern_matches(rule->patterns.data[0], run_set_text_get(set, f->file), run_set_text_get(set, f->name));
    }
    for (size_t i = 0; i < j->c->rows.count; i++) {
        const struct compare_row *row = &j->c->rows.data[i];
        if (row->tested && is_meant(j, rule, row) && !VEC_PUSH(&j->rows, (uint32_t)i))
            return error_no_memory();
    }
    return NULL;
}

/* ---- the test ---- */

/* Is the estimate a share, of a function that was not there, and not a logarithm? */
static bool is_share(const struct compare_row *row)
{
    return row->match == COMPARE_NEW || row->match == COMPARE_VANISHED;
}

static struct estimate estimate_of(const struct compare_row *row)
{
    double change = is_share(row) ? row->change : row->change > -1 ? log1p(row->change) : -DBL_MAX_EXP;

    return (struct estimate){change, row->error, row->df};
}

static double threshold_of(const struct compare_row *row, double limit)
{
    return is_share(row) ? limit : log1p(limit);
}

/* How far the row is over the limit, in standard errors: over 0 if it is. */
static double distance(const struct compare_row *row, double limit)
{
    double over = estimate_of(row).difference - threshold_of(row, limit);

    return row->error > 0 ? over / row->error : over > 0 ? DBL_MAX : -DBL_MAX;
}

static enum estimate_answer judge_row(const struct compare_row *row, double limit, double alpha)
{
    struct estimate e = estimate_of(row);

    return estimate_judge(&e, threshold_of(row, limit), alpha);
}

/* The runs a side with which a row that does not change at all would mostly be seen to keep the rule; 0: not known. */
static double runs_to_tell(const struct judge *j, const struct compare_row *row, double limit)
{
    double pairs = 1.0 / (double)j->c->old_runs.count + 1.0 / (double)j->c->new_runs.count;
    struct runs_wanted wanted = {.distance = threshold_of(row, limit),
                                 .variance = row->error * row->error / pairs,
                                 .prior_df = INFINITY,
                                 .alpha = j->alpha,
                                 .power = 0.8};

    if (!(wanted.distance > 0) || !(wanted.variance > 0))
        return 0;
    uint64_t runs = runs_needed(&wanted);
    return runs >= RUNS_NOT_FEASIBLE ? 0 : (double)runs;
}

/* The bounds that the answer goes by: the lower one as strict as m rows ask for. */
static void put_bounds(const struct judge *j, const struct compare_row *row, struct gate_result *out)
{
    struct estimate e = estimate_of(row);
    double unused;

    estimate_interval(&e, 1 - 2 * j->alpha / (double)j->rows.count, &out->low, &unused);
    estimate_interval(&e, 1 - 2 * j->alpha, &unused, &out->high);
    if (!is_share(row)) {
        out->low = expm1(out->low);
        out->high = expm1(out->high);
    }
    out->change = row->change;
}

/* Fills the answer of a rule that means rows. */
static void test(const struct judge *j, const struct rule *rule, struct gate_result *out)
{
    const struct compare_row *all = j->c->rows.data;
    double farthest = -INFINITY;
    bool broken = false, kept = true;

    for (size_t i = 0; i < j->rows.count; i++) {
        const struct compare_row *row = &all[j->rows.data[i]];
        broken |= judge_row(row, rule->limit, j->alpha / (double)j->rows.count) == ESTIMATE_ABOVE;
        kept &= judge_row(row, rule->limit, j->alpha) == ESTIMATE_BELOW;
    }
    /* Shown is the row that is farthest over the limit, of those that keep the rule from being kept. */
    for (size_t i = 0; i < j->rows.count; i++) {
        const struct compare_row *row = &all[j->rows.data[i]];
        double over = distance(row, rule->limit);
        bool counts = kept || judge_row(row, rule->limit, j->alpha) != ESTIMATE_BELOW;
        if (counts && over > farthest) {
            farthest = over;
            out->row = j->rows.data[i];
        }
    }
    out->answer = broken ? GATE_BROKEN : kept ? GATE_KEPT : GATE_UNDECIDED;
    put_bounds(j, &all[out->row], out);
    if (out->answer == GATE_UNDECIDED)
        out->runs_needed = runs_to_tell(j, &all[out->row], rule->limit);
}

/* ---- why nothing can be said ---- */

/* The first problem of a kind, as a reason; false: there is none. */
static bool put_problem(const struct comparison *c, enum compare_problem_kind kind, struct gate_result *out)
{
    for (size_t i = 0; i < c->problems.count; i++) {
        if (c->problems.data[i].kind == kind) {
            snprintf(out->reason, sizeof out->reason, "%s", text_of(c, c->problems.data[i].text));
            return true;
        }
    }
    return false;
}

static bool no_answer(const struct judge *j, struct gate_result *out)
{
    const struct comparison *c = j->c;

    if (c->old_runs.count < j->g->least_old || c->new_runs.count < j->g->least_new) {
        snprintf(out->reason, sizeof out->reason, "%zu old and %zu new runs: the rules ask for %u and %u", c->old_runs.count,
                 c->new_runs.count, j->g->least_old, j->g->least_new);
        return true;
    }
    if (c->conclusive)
        return false; /* runs that lost too much are left out then, if there are any */
    if (!put_problem(c, COMPARE_FEW, out) && !put_problem(c, COMPARE_LOSSY, out))
        snprintf(out->reason, sizeof out->reason, "nothing can be concluded from so few runs");
    return true;
}

static void no_row(const struct judge *j, const struct rule *rule, struct gate_result *out)
{
    static const char *const reasons[] = {
        [RULE_TOTAL] = "nothing says how much the runs did: see --work",
        [RULE_FUNCTION] = "no function of that name has enough samples in old and new runs",
        [RULE_FILE] = "no file of that name has enough samples in old and new runs",
        [RULE_NODE] = "no such call has enough samples in old and new runs",
    };

    if (rule->kind == RULE_NEW) {
        out->answer = GATE_KEPT;
        snprintf(out->reason, sizeof out->reason, "nothing is new that has enough samples");
    } else if (rule->kind != RULE_TOTAL || !put_problem(j->c, COMPARE_NO_WORK, out)) {
        snprintf(out->reason, sizeof out->reason, "%s", reasons[rule->kind]);
    }
}

/* ---- all rules ---- */

static struct error *judge_rule(struct judge *j, const struct rule *rule, struct gate_result *out)
{
    *out = (struct gate_result){.rule = rule->text, .origin = rule->origin, .answer = GATE_UNDECIDED, .row = COMPARE_NO_ROW,
                                .limit = rule->limit};
    if (no_answer(j, out))
        return NULL;
    TRY(find_rows(j, rule));
    if (j->rows.count)
        test(j, rule, out);
    else
        no_row(j, rule, out);
    return NULL;
}

struct error *gate_judge(struct gate *g, const struct comparison *c, const struct gate_result **results, size_t *count)
{
    struct judge j = {.c = c, .g = g, .alpha = g->looks ? spending_level(g->alpha, g->look, g->looks) : g->alpha};
    struct error *err = NULL;

    *results = NULL;
    *count = 0;
    j.has_nodes = calloc(c->set->functions.count + 1, sizeof *j.has_nodes);
    j.meant = calloc(c->set->functions.count + 1, sizeof *j.meant);
    if (!j.has_nodes || !j.meant || !VEC_RESERVE(&g->results, g->rules.count) || !find_nodes(&j))
        err = error_no_memory();
    g->results.count = 0;
    for (size_t i = 0; !err && i < g->rules.count; i++)
        err = judge_rule(&j, &g->rules.data[i], &g->results.data[g->results.count++]);
    free(j.has_nodes);
    free(j.meant);
    VEC_DEINIT(&j.rows);
    if (!err) {
        *results = g->results.data;
        *count = g->results.count;
    }
    return err;
}
