/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what formats/stats/ makes of tables, for a comparison with other implementations.
 *
 * The standard input holds words and numbers, with white space between them:
 *   moderated ROWS OLD NEW LEAST, then ROWS x (OLD + NEW) measures, then as many variances
 *   welch OLD NEW, then the measures
 *   sizes ROWS RUNS, then ROWS x RUNS times
 *   q COUNT, then p values
 *   digamma, trigamma, trigamma_inverse X; log_beta A B; beta A B X; upper T DF; quantile P DF
 *   runs DISTANCE VARIANCE PRIOR_DF ALPHA POWER; level ALPHA LOOK LOOKS
 * Each is answered by a line of numbers; moderated by tau2, d0, s02, df and then, for each row, its difference, error, df, p,
 * variance, p above log1p(0.02), and the ends of its 90 % interval; welch by difference, error, df, p, variance and the interval.
 * Exit: 0, 1 what is wrong goes to the standard error.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/stats/discoveries.h"
#include "formats/stats/moderated.h"
#include "formats/stats/runs_needed.h"
#include "formats/stats/size_factors.h"
#include "formats/stats/special.h"
#include "formats/stats/spending.h"
#include "formats/stats/student.h"
#include "formats/stats/welch.h"

static void stop(const char *why)
{
    fprintf(stderr, "stats_figures: %s\n", why);
    exit(1);
}

static void stop_if(struct error *err)
{
    if (err)
        stop(error_text(err));
}

static void *room(size_t count, size_t size)
{
    void *data = calloc(count ? count : 1, size);

    if (!data)
        stop("out of memory");
    return data;
}

static double number(void)
{
    double x;

    if (scanf("%lf", &x) != 1)
        stop("a number is missing");
    return x;
}

static size_t count(void)
{
    double x = number();

    if (!(x >= 0 && x <= 1e7))
        stop("a count is out of bounds");
    return (size_t)x;
}

static double *numbers(size_t n)
{
    double *x = room(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = number();
    return x;
}

static void print(double x)
{
    printf("%.17g ", x);
}

static void print_interval(const struct estimate *e)
{
    double low, high;

    estimate_interval(e, 0.9, &low, &high);
    print(low);
    print(high);
}

static void print_estimate(const struct estimate *e)
{
    print(e->difference);
    print(e->error);
    print(e->df);
    print(estimate_p(e));
}

static void moderated(void)
{
    struct moderated_table t = {.rows = count()};

    t.old_runs = count();
    t.new_runs = count();
    t.least = number();
    size_t cells = t.rows * (t.old_runs + t.new_runs);
    double *x = numbers(cells), *v = numbers(cells), *scratch = room(t.rows, sizeof *scratch);
    struct moderated_row *rows = room(t.rows, sizeof *rows);
    struct moderated_fit fit;

    t.x = x;
    t.v = v;
    stop_if(moderated_test(&t, &fit, rows, scratch));
    print(fit.tau2);
    print(fit.d0);
    print(fit.s02);
    print(fit.df);
    for (size_t i = 0; i < t.rows; i++) {
        print_estimate(&rows[i].estimate);
        print(rows[i].variance);
        print(estimate_p_above(&rows[i].estimate, log1p(0.02)));
        print_interval(&rows[i].estimate);
    }
    free(x);
    free(v);
    free(scratch);
    free(rows);
}

static void welch(void)
{
    size_t old_runs = count();
    size_t new_runs = count();
    double *x = numbers(old_runs + new_runs);
    struct welch w;

    stop_if(welch_test(x, old_runs, x + old_runs, new_runs, &w));
    print_estimate(&w.estimate);
    print(w.variance);
    print_interval(&w.estimate);
    free(x);
}

static void sizes(void)
{
    size_t rows = count();
    size_t runs = count();
    double *times = numbers(rows * runs), *factors = room(runs, sizeof *factors);
    struct weighted_number *scratch = room(rows, sizeof *scratch);

    size_factors(times, rows, runs, factors, scratch);
    for (size_t i = 0; i < runs; i++)
        print(factors[i]);
    free(times);
    free(factors);
    free(scratch);
}

static void q_values(void)
{
    size_t n = count(), *order = room(n, sizeof *order);
    double *p = numbers(n), *q = room(n, sizeof *q);

    discovery_q(p, n, q, order);
    for (size_t i = 0; i < n; i++)
        print(q[i]);
    free(order);
    free(p);
    free(q);
}

static double function(const char *name)
{
    double a = number();

    if (!strcmp(name, "digamma"))
        return digamma(a);
    if (!strcmp(name, "trigamma"))
        return trigamma(a);
    if (!strcmp(name, "trigamma_inverse"))
        return trigamma_inverse(a);
    double b = number();
    if (!strcmp(name, "log_beta"))
        return log_beta(a, b);
    if (!strcmp(name, "upper"))
        return student_upper(a, b);
    if (!strcmp(name, "quantile"))
        return student_quantile(a, b);
    double c = number();
    if (!strcmp(name, "beta"))
        return beta_incomplete(c, 1 - c, a, b);
    if (!strcmp(name, "level"))
        return spending_level(a, (uint32_t)b, (uint32_t)c);
    if (strcmp(name, "runs"))
        stop("the word is not known");
    struct runs_wanted w = {.distance = a, .variance = b, .prior_df = c, .alpha = number()};
    w.power = number();
    return (double)runs_needed(&w);
}

int main(void)
{
    char word[20];

    while (scanf("%19s", word) == 1) {
        if (!strcmp(word, "moderated"))
            moderated();
        else if (!strcmp(word, "welch"))
            welch();
        else if (!strcmp(word, "sizes"))
            sizes();
        else if (!strcmp(word, "q"))
            q_values();
        else
            print(function(word));
        putchar('\n');
    }
    return 0;
}
