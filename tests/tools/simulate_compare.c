/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a comparison of runs is wrong, and how often it finds what is there: compare_runs() and gate_judge(), as pysym
 * diff calls them, over made-up runs whose truth is known (made_up_runs.h).
 *
 * usage: simulate_compare DRAWS SEED rows|found|power|total|looks|function|limits...
 *
 * Each line of the output says what was simulated and what came out, as NAME=VALUE; rates are in percent. `old` and `new`:
 * runs; `runs`: of each side. `handlers`: functions between main() and the others.
 *   rows: nothing changed. row: of all tested rows, those with p < 5 %, and of each kind of row; any: comparisons with a
 *         finding after the correction. tested: rows in it, on average.
 *   found: the function of 25 % got slower by `change` %, and its code changed. found: it is a finding; first: the first one,
 *         with its changed code; others: there are findings that are neither it nor its file.
 *   power: one line of found: 10 runs, 10 %.
 *   total: the rule "total 2%" when everything got slower by `change` %; the total of runs varies by 1 %.
 *   looks: the same, looked at with 3, 4 ... 20 runs a side until it is decided. runs: when it was, on average.
 *   function: the rule "function NAME 5%" when that function of 25 % got slower by `change` %.
 *   limits: lines of these three whose change is the rule's limit: each answer is false.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/compare/comparison.h"
#include "formats/compare/gate.h"
#include "tests/tools/made_up_runs.h"
#include "tests/tools/simulate_parts.h"

enum { RUNS_MAX = 40, SLOW = 0 };

static const double alpha = 0.05;
static const struct made_change unchanged;

static void stop_if(struct error *err)
{
    if (err) {
        fprintf(stderr, "simulate_compare: %s\n", error_text(err));
        exit(1);
    }
}

static struct comparison compare(struct made_program *p, const uint32_t *old, size_t old_runs, const uint32_t *new,
                                 size_t new_runs)
{
    const struct compare_options options = {0};
    struct comparison c = {0};

    stop_if(compare_runs(&p->set, old, old_runs, new, new_runs, &options, &c));
    return c;
}

/* The old runs, then the new. */
static void make_runs(struct made_program *p, struct random *r, const struct made_noise *n, size_t old_runs, size_t new_runs,
                      struct made_change change, uint32_t *numbers)
{
    made_program_init(p, n->handlers);
    for (size_t i = 0; i < old_runs + new_runs; i++)
        numbers[i] = made_run(p, r, n, i < old_runs ? unchanged : change);
}

static bool is_finding(const struct compare_row *row)
{
    return row->kind != COMPARE_TOTAL && row->because == COMPARE_NO_ROW &&
           (row->answer == COMPARE_SLOWER || row->answer == COMPARE_FASTER);
}

/* ---- nothing changed ---- */

struct alarms {
    uint64_t tested[COMPARE_KINDS], low[COMPARE_KINDS];
    uint64_t any, correction;
};

static void count_alarms(const struct comparison *c, struct alarms *a)
{
    bool any = false;

    for (size_t i = 0; i < c->rows.count; i++) {
        const struct compare_row *row = &c->rows.data[i];
        a->tested[row->kind] += row->tested;
        a->low[row->kind] += row->tested && row->p < alpha;
        any = any || is_finding(row);
    }
    a->any += any;
    a->correction += c->tested_rows;
}

static void print_alarms(const struct alarms *a, int draws)
{
    static const char *const names[COMPARE_KINDS] = {"total",          "node", "node_self", "function_self",
                                                     "function_total", "line", "module"};
    uint64_t tested = 0, low = 0;

    for (int kind = 0; kind < COMPARE_KINDS; kind++) {
        if (a->tested[kind])
            printf(" %s=%.2f", names[kind], 100.0 * (double)a->low[kind] / (double)a->tested[kind]);
        tested += kind == COMPARE_TOTAL ? 0 : a->tested[kind];
        low += kind == COMPARE_TOTAL ? 0 : a->low[kind];
    }
    printf(" tested=%.0f row=%.2f any=%.1f\n", (double)a->correction / draws, 100.0 * (double)low / (double)tested,
           100.0 * (double)a->any / draws);
}

static void simulate_rows(struct random *r, int draws)
{
    static const struct made_noise noises[] = {
        {.samples = 4000, .clumps = 1},
        {.samples = 4000, .clumps = 1, .cv = 0.02},
        {.samples = 4000, .clumps = 1, .cv = 0.05, .machine = 0.03},
        {.samples = 4000, .clumps = 1, .cv = 0.05, .machine = 0.10},
        {.samples = 4000, .clumps = 4, .cv = 0.02, .machine = 0.02},
        {.samples = 4000, .clumps = 1, .cv = 0.02, .machine = 0.02, .mix = 0.10, .handlers = 4},
    };
    static const size_t sides[][2] = {{3, 3}, {5, 5}, {10, 10}, {10, 1}};
    uint32_t numbers[RUNS_MAX];

    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++)
        for (size_t side = 0; side < sizeof sides / sizeof *sides; side++) {
            const struct made_noise *n = &noises[i];
            size_t old_runs = sides[side][0], new_runs = sides[side][1];
            struct alarms a = {0};
            for (int draw = 0; draw < draws; draw++) {
                struct made_program p;
                make_runs(&p, r, n, old_runs, new_runs, unchanged, numbers);
                struct comparison c = compare(&p, numbers, old_runs, numbers + old_runs, new_runs);
                count_alarms(&c, &a);
                comparison_deinit(&c);
                made_program_deinit(&p);
            }
            printf("rows cv=%g machine=%g mix=%g clumps=%g handlers=%u old=%zu new=%zu", 100 * n->cv, 100 * n->machine,
                   100 * n->mix, n->clumps, n->handlers, old_runs, new_runs);
            print_alarms(&a, draws);
        }
}

/* ---- one function got slower ---- */

struct finds {
    int found, first, others;
};

static void count_finds(const struct made_program *p, const struct comparison *c, struct finds *f)
{
    uint32_t slow = p->functions[SLOW];
    bool found = false, first = false, named = false, other = false;

    for (size_t i = 1; i < c->rows.count; i++) {
        const struct compare_row *row = &c->rows.data[i];
        if (!is_finding(row))
            continue;
        bool it = row->function == slow && row->answer == COMPARE_SLOWER;
        first = first || (it && !named && row->code == COMPARE_CODE_CHANGED);
        named = true;
        found = found || it;
        other = other || (!it && !(row->kind == COMPARE_MODULE && row->module == p->set.functions.data[slow].file));
    }
    f->found += found;
    f->first += first;
    f->others += other;
}

static void simulate_found_with(struct random *r, int draws, const struct made_noise *n, size_t runs, double growth)
{
    uint32_t numbers[RUNS_MAX];
    struct finds f = {0};

    for (int draw = 0; draw < draws; draw++) {
        struct made_program p;
        make_runs(&p, r, n, runs, runs, (struct made_change){.function = SLOW, .growth = growth}, numbers);
        struct comparison c = compare(&p, numbers, runs, numbers + runs, runs);
        count_finds(&p, &c, &f);
        comparison_deinit(&c);
        made_program_deinit(&p);
    }
    printf("found cv=%g machine=%g mix=%g handlers=%u runs=%zu change=%g found=%.1f first=%.1f others=%.1f\n", 100 * n->cv,
           100 * n->machine, 100 * n->mix, n->handlers, runs, 100 * growth, 100.0 * f.found / draws, 100.0 * f.first / draws,
           100.0 * f.others / draws);
}

static const struct made_noise quiet = {.samples = 4000, .clumps = 1, .cv = 0.01, .machine = 0.005};

static void simulate_power(struct random *r, int draws)
{
    simulate_found_with(r, draws, &quiet, 10, 0.10);
}

static void simulate_found(struct random *r, int draws)
{
    static const struct made_noise mixed = {.samples = 4000, .clumps = 1, .cv = 0.01, .machine = 0.005, .mix = 0.05,
                                            .handlers = 4};
    static const size_t runs[] = {3, 5, 10, 20};

    for (int is_mixed = 0; is_mixed < 2; is_mixed++)
        for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
            for (double growth = 0.05; growth < 0.11; growth += 0.05)
                simulate_found_with(r, draws, is_mixed ? &mixed : &quiet, runs[i], growth);
}

/* ---- rules ---- */

/* What becomes of a rule, at a look. */
static enum gate_answer judge(const char *rule, const struct comparison *c, uint32_t look, uint32_t looks)
{
    const struct gate_result *results;
    struct gate *g = gate_create();
    size_t count;

    made_check(g);
    stop_if(gate_add(g, rule, "--fail-on"));
    if (looks > 1)
        stop_if(gate_set_look(g, look, looks));
    stop_if(gate_judge(g, c, &results, &count));
    enum gate_answer answer = results[0].answer;
    gate_destroy(g);
    return answer;
}

/* Looks with `first` runs a side, and one more each time, until the rule is decided; returns the runs of the last look. */
static size_t look(struct made_program *p, const uint32_t *numbers, size_t first, size_t last, const char *rule,
                   enum gate_answer *answer)
{
    for (size_t runs = first;; runs++) {
        struct comparison c = compare(p, numbers, runs, numbers + last, runs);
        *answer = judge(rule, &c, (uint32_t)(runs - first + 1), (uint32_t)(last - first + 1));
        comparison_deinit(&c);
        if (*answer != GATE_UNDECIDED || runs == last)
            return runs;
    }
}

static void simulate_rule(struct random *r, int draws, const char *part, const char *rule, const struct made_noise *n,
                          struct made_change change, size_t first, size_t last)
{
    int answers[3] = {0};
    uint64_t runs = 0;
    uint32_t numbers[RUNS_MAX];

    for (int draw = 0; draw < draws; draw++) {
        enum gate_answer answer;
        struct made_program p;
        make_runs(&p, r, n, last, last, change, numbers);
        runs += look(&p, numbers, first, last, rule, &answer);
        answers[answer]++;
        made_program_deinit(&p);
    }
    printf("%s change=%g fails=%.1f passes=%.1f open=%.1f runs=%.1f\n", part, 100 * (change.all + change.growth),
           100.0 * answers[GATE_BROKEN] / draws, 100.0 * answers[GATE_KEPT] / draws, 100.0 * answers[GATE_UNDECIDED] / draws,
           (double)runs / draws);
}

/* Runs whose total varies by 1 %: so many samples that chance adds next to nothing. */
static const struct made_noise total_noise = {.samples = 1e7, .clumps = 1, .machine = 0.01};

static void simulate_total_with(struct random *r, int draws, int percent, size_t runs)
{
    simulate_rule(r, draws, "total", "total 2%", &total_noise, (struct made_change){.all = percent / 100.0}, runs, runs);
}

static void simulate_looks_with(struct random *r, int draws, int percent)
{
    simulate_rule(r, draws, "looks", "total 2%", &total_noise, (struct made_change){.all = percent / 100.0}, 3, 20);
}

static void simulate_function_with(struct random *r, int draws, int percent, size_t runs)
{
    simulate_rule(r, draws, "function", "function app/module_0.py:work_00 5%", &quiet,
                  (struct made_change){.function = SLOW, .growth = percent / 100.0}, runs, runs);
}

static void simulate_total(struct random *r, int draws)
{
    for (size_t runs = 5; runs <= 20; runs *= 2)
        for (int percent = 0; percent < 6; percent++)
            simulate_total_with(r, draws, percent, runs);
}

static void simulate_looks(struct random *r, int draws)
{
    for (int percent = 0; percent < 6; percent++)
        simulate_looks_with(r, draws, percent);
}

static void simulate_function(struct random *r, int draws)
{
    for (size_t runs = 5; runs <= 20; runs *= 2)
        for (int percent = 0; percent < 16; percent += 5)
            simulate_function_with(r, draws, percent, runs);
}

static void simulate_limits(struct random *r, int draws)
{
    for (size_t runs = 5; runs <= 20; runs *= 2) {
        simulate_total_with(r, draws, 2, runs);
        simulate_function_with(r, draws, 5, runs);
    }
    simulate_looks_with(r, draws, 2);
}

int main(int argc, char **argv)
{
    static const struct simulate_part parts[] = {
        {"rows", simulate_rows},   {"found", simulate_found},       {"power", simulate_power},   {"total", simulate_total},
        {"looks", simulate_looks}, {"function", simulate_function}, {"limits", simulate_limits},
    };

    return simulate_parts(parts, sizeof parts / sizeof *parts, argc, argv);
}
