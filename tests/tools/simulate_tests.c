/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the tests of formats/stats/ are wrong, and how often they find what is there, on made-up runs whose truth is
 * known. The functions are those that pysym diff calls.
 *
 * usage: simulate_tests DRAWS SEED rows|found|total|looks|needed...
 *
 * A program of 40 functions, of which eight have 25, 15, 10, 8, 6, 5, 4 and 3 % of its time and the rest equal parts of the
 * remaining 24 %. A run has some 4,000 samples (40 s of one busy CPU at 99 Hz). Runs differ: each function's time by its own
 * factor (`cv`), all of them by one (`machine`); samples may come in clumps (`clumps` at a time).
 *
 * Each line of the output says what was simulated and what came out, as NAME=VALUE; rates are in percent.
 *   rows: nothing changed. row: of all functions, those called changed at p < 5 %; any: comparisons with a q < 5 %.
 *   found: a function got slower by `change` %. found: q < 5 %; first: with the least p; others: any other q < 5 %.
 *   total: the rule "total 2%" when the total changed by `change` %, which varies by `cv` % between runs.
 *   looks: the same, looked at with 3, 4 ... 20 runs a side until it is decided. runs: when it was, on average.
 *   needed: how often what runs_needed() promises in 80 % comes true, with as many runs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/stats/discoveries.h"
#include "formats/stats/moderated.h"
#include "formats/stats/runs_needed.h"
#include "formats/stats/spending.h"
#include "formats/stats/welch.h"
#include "tests/tools/made_up_runs.h"
#include "tests/tools/simulate_parts.h"

enum { RUNS_MAX = 40, SAMPLES = 4000 };

static const double alpha = 0.05;

/* How runs differ; `clumps` 1: samples are independent. */
struct noise {
    double cv, machine, clumps;
};

/* A function that got slower; change 0: none. */
struct slower {
    int function;
    double change;
};

static void stop(const char *why)
{
    fprintf(stderr, "simulate_tests: %s\n", why);
    exit(1);
}

static void stop_if(struct error *err)
{
    if (err)
        stop(error_text(err));
}

/* The samples of each function in one run. */
static void make_run(struct random *r, const struct noise *n, struct slower s, double *counts)
{
    double machine = exp(n->machine * random_normal(r));

    for (int i = 0; i < MADE_FUNCTIONS; i++) {
        double own = exp(n->cv * random_normal(r) - n->cv * n->cv / 2), grown = i == s.function ? 1 + s.change : 1;
        counts[i] = n->clumps * random_poisson(r, SAMPLES * made_share(i) * own * machine * grown / n->clumps);
    }
}

/* Tests old against new runs: each function's share of all, as log odds. How samples clump is known. */
static void compare(struct random *r, const struct noise *n, struct slower s, size_t old_runs, size_t new_runs, double *p,
                    double *q)
{
    static double x[MADE_FUNCTIONS * 2 * RUNS_MAX], v[MADE_FUNCTIONS * 2 * RUNS_MAX];
    struct moderated_table t = {.x = x, .v = v, .rows = MADE_FUNCTIONS, .old_runs = old_runs, .new_runs = new_runs,
                                .least = 1};
    struct moderated_row rows[MADE_FUNCTIONS];
    struct moderated_fit fit;
    double scratch[MADE_FUNCTIONS], counts[MADE_FUNCTIONS];
    size_t runs = old_runs + new_runs, order[MADE_FUNCTIONS];

    for (size_t run = 0; run < runs; run++) {
        double all = 0, half = n->clumps / 2;
        make_run(r, n, run < old_runs ? (struct slower){0} : s, counts);
        for (int i = 0; i < MADE_FUNCTIONS; i++)
            all += counts[i];
        for (int i = 0; i < MADE_FUNCTIONS; i++) {
            x[i * runs + run] = log((counts[i] + half) / (all - counts[i] + half));
            v[i * runs + run] = n->clumps * (1 / (counts[i] + half) + 1 / (all - counts[i] + half));
        }
    }
    stop_if(moderated_test(&t, &fit, rows, scratch));
    for (int i = 0; i < MADE_FUNCTIONS; i++)
        p[i] = rows[i].p;
    discovery_q(p, MADE_FUNCTIONS, q, order);
}

static void simulate_rows(struct random *r, int draws)
{
    static const struct noise noises[] = {{0, 0, 1}, {0.02, 0, 1}, {0.05, 0.03, 1}, {0.05, 0.10, 1}, {0.02, 0.02, 4}};
    static const size_t sides[][2] = {{3, 3}, {5, 5}, {10, 10}, {5, 1}, {10, 1}};

    for (size_t n = 0; n < sizeof noises / sizeof *noises; n++)
        for (size_t side = 0; side < sizeof sides / sizeof *sides; side++) {
            double p[MADE_FUNCTIONS], q[MADE_FUNCTIONS];
            int rows = 0, any = 0;
            for (int draw = 0; draw < draws; draw++) {
                bool found = false;
                compare(r, &noises[n], (struct slower){0}, sides[side][0], sides[side][1], p, q);
                for (int i = 0; i < MADE_FUNCTIONS; i++) {
                    rows += p[i] < alpha;
                    found = found || q[i] < alpha;
                }
                any += found;
            }
            printf("rows cv=%g machine=%g clumps=%g old=%zu new=%zu row=%.2f any=%.1f\n", 100 * noises[n].cv,
                   100 * noises[n].machine, noises[n].clumps, sides[side][0], sides[side][1],
                   100.0 * rows / draws / MADE_FUNCTIONS, 100.0 * any / draws);
        }
}

/* One line: the function of that number got slower. */
static void simulate_slower(struct random *r, int draws, const struct noise *n, struct slower s, size_t runs)
{
    double p[MADE_FUNCTIONS], q[MADE_FUNCTIONS];
    int found = 0, first = 0, others = 0;

    for (int draw = 0; draw < draws; draw++) {
        bool least = true, other = false;
        compare(r, n, s, runs, runs, p, q);
        for (int i = 0; i < MADE_FUNCTIONS; i++) {
            least = least && p[s.function] <= p[i];
            other = other || (i != s.function && q[i] < alpha);
        }
        found += q[s.function] < alpha;
        first += q[s.function] < alpha && least;
        others += other;
    }
    printf("found cv=%g machine=%g runs=%zu share=%g change=%g found=%.1f first=%.1f others=%.1f\n", 100 * n->cv,
           100 * n->machine, runs, 100 * made_share(s.function), 100 * s.change, 100.0 * found / draws, 100.0 * first / draws,
           100.0 * others / draws);
}

static void simulate_found(struct random *r, int draws)
{
    static const struct noise noises[] = {{0.01, 0.005, 1}, {0.02, 0.01, 1}, {0.05, 0.03, 1}};
    static const double changes[] = {0.02, 0.05, 0.10};
    static const size_t runs[] = {3, 5, 10, 20};

    for (size_t n = 0; n < sizeof noises / sizeof *noises; n++)
        for (size_t c = 0; c < sizeof changes / sizeof *changes; c++)
            for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
                for (int function = 0; function < 8; function += 7)
                    simulate_slower(r, draws, &noises[n], (struct slower){function, changes[c]}, runs[i]);
}

/* Logs of the total of both sides. */
static void make_totals(struct random *r, double cv, double change, size_t runs, double *old, double *new)
{
    for (size_t i = 0; i < runs; i++) {
        old[i] = cv * random_normal(r);
        new[i] = cv * random_normal(r) + log1p(change);
    }
}

/* The rule "total 2%", at the level. */
static enum estimate_answer judge(const double *old, const double *new, size_t runs, double level)
{
    struct welch w;

    stop_if(welch_test(old, runs, new, runs, &w));
    return estimate_judge(&w.estimate, log1p(0.02), level);
}

static const double total_cvs[] = {0.005, 0.01, 0.02}, total_changes[] = {0, 0.01, 0.02, 0.03, 0.05};
enum { CVS = sizeof total_cvs / sizeof *total_cvs, CHANGES = sizeof total_changes / sizeof *total_changes };

/* The end of a line of answers. */
static void print_answers(const int *answers, int draws)
{
    printf(" fails=%.1f passes=%.1f open=%.1f", 100.0 * answers[ESTIMATE_ABOVE] / draws, 100.0 * answers[ESTIMATE_BELOW] / draws,
           100.0 * answers[ESTIMATE_CANNOT_TELL] / draws);
}

static void simulate_total(struct random *r, int draws)
{
    static const size_t runs[] = {3, 5, 10, 20};
    double old[RUNS_MAX], new[RUNS_MAX];

    for (int cv = 0; cv < CVS; cv++)
        for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
            for (int change = 0; change < CHANGES; change++) {
                int answers[3] = {0};
                for (int draw = 0; draw < draws; draw++) {
                    make_totals(r, total_cvs[cv], total_changes[change], runs[i], old, new);
                    answers[judge(old, new, runs[i], alpha)]++;
                }
                printf("total cv=%g runs=%zu change=%g", 100 * total_cvs[cv], runs[i], 100 * total_changes[change]);
                print_answers(answers, draws);
                printf("\n");
            }
}

static void simulate_looks(struct random *r, int draws)
{
    enum { FIRST = 3, LAST = 20, LOOKS = LAST - FIRST + 1 };
    double old[RUNS_MAX], new[RUNS_MAX];

    for (int cv = 0; cv < CVS; cv++)
        for (int change = 0; change < CHANGES; change++) {
            int answers[3] = {0}, runs_sum = 0;
            for (int draw = 0; draw < draws; draw++) {
                enum estimate_answer answer = ESTIMATE_CANNOT_TELL;
                int runs = FIRST;
                make_totals(r, total_cvs[cv], total_changes[change], LAST, old, new);
                for (; runs <= LAST && answer == ESTIMATE_CANNOT_TELL; runs++)
                    answer = judge(old, new, (size_t)runs, spending_level(alpha, (uint32_t)(runs - FIRST + 1), LOOKS));
                answers[answer]++;
                runs_sum += runs - 1;
            }
            printf("looks cv=%g change=%g", 100 * total_cvs[cv], 100 * total_changes[change]);
            print_answers(answers, draws);
            printf(" runs=%.1f\n", (double)runs_sum / draws);
        }
}

/* With the runs that are needed to find one changed row among `rows`, whose variance between runs is known to be cv^2. */
static void simulate_needed_rows(struct random *r, int draws, double cv, double change)
{
    struct runs_wanted w = {log1p(change), cv * cv, INFINITY, runs_alpha_of_many(alpha, MADE_FUNCTIONS), 0.8};
    uint64_t runs = runs_needed(&w);
    double p[MADE_FUNCTIONS], q[MADE_FUNCTIONS];
    size_t order[MADE_FUNCTIONS];
    int found = 0;

    for (int draw = 0; draw < draws; draw++) {
        for (int i = 0; i < MADE_FUNCTIONS; i++) {
            struct estimate e = {0, cv * sqrt(2 / (double)runs), INFINITY};
            e.difference = random_normal(r) * e.error + (i ? 0 : w.distance);
            p[i] = estimate_p(&e);
        }
        discovery_q(p, MADE_FUNCTIONS, q, order);
        found += q[0] < alpha;
    }
    printf("needed rows=%d cv=%g change=%g runs=%" PRIu64 " factor=%.1f found=%.1f\n", MADE_FUNCTIONS, 100 * cv, 100 * change,
           runs, (double)runs * w.distance * w.distance / w.variance, 100.0 * found / draws);
}

static void simulate_needed(struct random *r, int draws)
{
    static const double values[][2] = {{0.005, 0.01}, {0.01, 0.01}, {0.01, 0.02}, {0.02, 0.02}, {0.05, 0.05}, {0.05, 0.10}};
    double old[RUNS_MAX], new[RUNS_MAX];

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        double cv = values[i][0], change = values[i][1];
        struct runs_wanted w = {log1p(change), cv * cv, 0, alpha, 0.8};
        uint64_t runs = runs_needed(&w);
        int found = 0;
        for (int draw = 0; draw < draws; draw++) {
            struct welch test;
            make_totals(r, cv, change, runs, old, new);
            stop_if(welch_test(old, runs, new, runs, &test));
            found += estimate_judge(&test.estimate, 0, alpha) == ESTIMATE_ABOVE;
        }
        printf("needed rows=1 cv=%g change=%g runs=%" PRIu64 " factor=%.1f found=%.1f\n", 100 * cv, 100 * change, runs,
               (double)runs * w.distance * w.distance / w.variance, 100.0 * found / draws);
    }
    simulate_needed_rows(r, draws, 0.05, 0.05);
    simulate_needed_rows(r, draws, 0.05, 0.02);
}

int main(int argc, char **argv)
{
    static const struct simulate_part parts[] = {
        {"rows", simulate_rows},   {"found", simulate_found},   {"total", simulate_total},
        {"looks", simulate_looks}, {"needed", simulate_needed},
    };

    return simulate_parts(parts, sizeof parts / sizeof *parts, argc, argv);
}
