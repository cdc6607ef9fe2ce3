/* SPDX-License-Identifier: Apache-2.0 */
/* formats/stats/moderated.c: a table whose figures scipy gave, and those at the edges of what can be tested. */
#include "tests/unit/test.h"

#include <math.h>

#include "formats/stats/means.h"
#include "formats/stats/moderated.h"

enum { ROWS = 5, RUNS = 5, OLD = 3 };

static const double measures[ROWS * RUNS] = {
    0.44,  0.56,  0.6,   0.6,   0.68,
    0.88,  1.16,  0.89,  1.57,  1.79,
    -0.99, -1.05, -1.01, -0.94, -0.97,
    2.11,  2.07,  1.96,  1.63,  2.2,
    -0.6,  0.09,  -0.04, 0.05,  0.1,
};
static const double variances[ROWS * RUNS] = {
    0.009, 0.014, 0.012, 0.002, 0.015,
    0.014, 0.016, 0.004, 0.02,  0.017,
    0.018, 0.019, 0.013, 0.008, 0.002,
    0.014, 0.013, 0.013, 0.001, 0.019,
    0.008, 0.002, 0.02,  0.015, 0.011,
};

static void near(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%.17g, not %.17g", got, wanted);
}

/* Tests a table of `rows` equal sampling variances. */
static struct moderated_fit test_equal(const double *x, size_t rows, size_t old_runs, size_t new_runs, double variance,
                                       struct moderated_row *out)
{
    struct moderated_table t = {.x = x, .rows = rows, .old_runs = old_runs, .new_runs = new_runs, .least = 1};
    struct moderated_fit fit;
    double v[64], scratch[16];

    for (size_t i = 0; i < rows * (old_runs + new_runs); i++)
        v[i] = variance;
    t.v = v;
    OK(moderated_test(&t, &fit, out, scratch));
    return fit;
}

/* moderated() of tests/tools/stats_reference.py, with scipy 1.17.1 */
TEST(figures_are_those_of_scipy)
{
    static const double wanted[ROWS][6] = { /* difference, error, p, variance, interval */
        {0.10666666666666669, 0.09309493362512627, 0.3102442807868246, 0.0104, -0.0866269378683917, 0.2999602712017251},
        {0.7033333333333335, 0.12880460110186795, 0.004108667263572359, 0.019908750318013584, 0.4358955184256413,
         0.9707711482410257},
        {0.06166666666666665, 0.1, 0.5678861882080631, 0.012, -0.14596397122971028, 0.26929730456304357},
        {-0.13166666666666638, 0.1879044229301936, 0.5187129639936309, 0.04236968658807488, -0.5218138186321333,
         0.2584804852988006},
        {0.25833333333333336, 0.23091444116373258, 0.32047218779624514, 0.0639857749655507, -0.22111579384977864,
         0.7377824605164454},
    };
    struct moderated_table t = {.x = measures, .v = variances, .rows = ROWS, .old_runs = OLD, .new_runs = RUNS - OLD, .least = 1};
    struct moderated_row rows[ROWS];
    struct moderated_fit fit;
    double scratch[ROWS], low, high;

    OK(moderated_test(&t, &fit, rows, scratch));
    near(fit.tau2, 0.02073055555555558);
    near(fit.d0, 1.4087458437083569);
    near(fit.s02, 0.2663363745766815);
    near(fit.df, 3);
    for (int i = 0; i < ROWS; i++) {
        near(rows[i].estimate.difference, wanted[i][0]);
        near(rows[i].estimate.error, wanted[i][1]);
        near(rows[i].estimate.df, 4.408745843708357);
        near(rows[i].p, wanted[i][2]);
        near(rows[i].variance, wanted[i][3]);
        estimate_interval(&rows[i].estimate, 0.9, &low, &high);
        near(low, wanted[i][4]);
        near(high, wanted[i][5]);
    }
    /* Rows 0 and 2 vary less than sampling alone makes them. */
    assert_true(rows[0].variance == rows[0].sampling && rows[2].variance == rows[2].sampling);
}

/* Rows that were in the fit have the same test when the fit is applied to them. */
TEST(a_fit_can_be_applied_to_further_rows)
{
    struct moderated_table t = {.x = measures, .v = variances, .rows = ROWS, .old_runs = OLD, .new_runs = RUNS - OLD, .least = 1};
    struct moderated_row rows[ROWS], again[2];
    struct moderated_fit fit;
    double scratch[ROWS], df;

    OK(moderated_test(&t, &fit, rows, scratch));
    t.x += 2 * RUNS;
    t.v += 2 * RUNS;
    t.rows = 2;
    OK(moderated_apply(&t, &fit, again));
    for (int i = 0; i < 2; i++) {
        near(again[i].p, rows[2 + i].p);
        near(again[i].variance, rows[2 + i].variance);
        near(again[i].estimate.df, rows[2 + i].estimate.df);
    }
    /* One run of its own: what is expected, in the common proportion, but no less than sampling causes. */
    near(moderated_variance(&fit, 0, 0, 0.001, &df), (0.001 + fit.tau2) * fit.s02);
    near(df, fit.d0);
    near(moderated_variance(&fit, 0, 0, 0.01, &df), 0.01);
    /* Nothing was learned. */
    fit = (struct moderated_fit){.s02 = 1, .least = 1};
    near(moderated_variance(&fit, 0, 0, 0.01, &df), 0.01);
    assert_true(df == 0);
}

/* Without the error of sampling as the least, rows 0 and 2 have what the runs say: e (d0 s02 + df s2/e) / (d0 + df). */
TEST(the_least_variance_can_be_chosen)
{
    struct moderated_table t = {.x = measures, .v = variances, .rows = ROWS, .old_runs = OLD, .new_runs = RUNS - OLD};
    struct moderated_row rows[ROWS];
    struct moderated_fit fit;
    double scratch[ROWS];

    OK(moderated_test(&t, &fit, rows, scratch));
    for (int i = 0; i < ROWS; i++) {
        double e = rows[i].sampling + fit.tau2;
        near(rows[i].variance, (fit.d0 * fit.s02 * e + fit.df * rows[i].spread) / (fit.d0 + fit.df));
    }
    assert_true(rows[0].variance < rows[0].sampling && rows[2].variance < rows[2].sampling);
    /* One row that never varies: there is no variance to learn from, but no error is 0. */
    static const double same[] = {1, 1, 2, 2}, known[] = {0.04, 0.04, 0.04, 0.04};
    t = (struct moderated_table){.x = same, .v = known, .rows = 1, .old_runs = 2, .new_runs = 2};
    OK(moderated_test(&t, &fit, rows, scratch));
    near(rows[0].variance, 0.04 * MODERATED_LEAST);
}

/* Neither the order of the rows nor that of the runs of a side matters. */
TEST(order_does_not_matter)
{
    struct moderated_row rows[ROWS], back[ROWS];
    struct moderated_fit fit, back_fit;
    double x[ROWS * RUNS];

    for (int i = 0; i < ROWS; i++)
        for (int r = 0; r < RUNS; r++)
            x[(ROWS - 1 - i) * RUNS + (r < OLD ? OLD - 1 - r : RUNS - 1 - (r - OLD))] = measures[i * RUNS + r];
    fit = test_equal(measures, ROWS, OLD, RUNS - OLD, 0.01, rows);
    back_fit = test_equal(x, ROWS, OLD, RUNS - OLD, 0.01, back);
    near(back_fit.tau2, fit.tau2);
    near(back_fit.d0, fit.d0);
    for (int i = 0; i < ROWS; i++)
        near(back[ROWS - 1 - i].p, rows[i].p);
}

TEST(one_against_one_concludes_nothing)
{
    static const double x[] = {1, 5, 2, 2};
    struct moderated_row rows[2];
    struct moderated_fit fit = test_equal(x, 2, 1, 1, 0.02, rows);

    assert_true(fit.df == 0 && fit.d0 == 0 && fit.tau2 == 0);
    assert_true(rows[0].estimate.difference == 4 && rows[0].estimate.df == 0 && rows[0].p == 1);
    near(rows[0].estimate.error, 0.2);
    assert_int_equal(estimate_judge(&rows[0].estimate, 0, 0.05), ESTIMATE_CANNOT_TELL);
}

/* With one run on a side the other side's runs tell how much runs differ. */
TEST(one_new_run)
{
    static const double x[] = {1.0, 1.2, 1.1, 0.9, 3.0, 7.0, 7.1, 7.3, 7.2, 7.1};
    struct moderated_row rows[2];
    struct moderated_fit fit = test_equal(x, 2, 4, 1, 1e-4, rows);

    assert_true(fit.df == 3 && rows[0].estimate.df <= 6);
    near(rows[0].estimate.difference, 1.95);
    near(rows[0].spread, 0.05 / 3);
    assert_true(rows[0].p < 0.01 && rows[1].p > 0.5);
}

/* Nothing is learned from other rows: the t test of equal variances, with the sampling error as the least. */
TEST(one_row)
{
    static const double x[] = {1, 2, 3, 5, 6, 7};
    struct moderated_row row;
    struct moderated_fit fit = test_equal(x, 1, 3, 3, 0.01, &row);

    assert_true(fit.d0 == 0 && row.estimate.df == 4);
    near(row.variance, 1);
    near(row.estimate.error, sqrt(2.0 / 3));
    test_equal(x, 1, 3, 3, 9, &row);
    near(row.variance, 9);
}

TEST(rows_that_never_vary_have_the_error_of_sampling)
{
    static const double same[] = {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 4}, half[] = {1, 1, 1, 1, 2, 2, 2, 2, 3, 9, 4, 1};
    struct moderated_row rows[3];
    struct moderated_fit fit = test_equal(same, 3, 2, 2, 0.04, rows);

    assert_true(isinf(fit.d0) && fit.tau2 == 0);
    for (int i = 0; i < 3; i++) {
        near(rows[i].variance, 0.04);
        near(rows[i].estimate.df, 6);
    }
    near(rows[2].estimate.difference, 1);
    assert_true(rows[0].p == 1 && rows[2].p < 0.01);
    fit = test_equal(half, 3, 2, 2, 0.04, rows);
    assert_true(fit.tau2 == 0 && fit.d0 > 0 && fit.s02 > 0 && isfinite(fit.s02));
    near(rows[0].variance, 0.04);
    assert_true(rows[2].variance > 0.04 && isfinite(rows[2].variance) && rows[2].p > 0.05);
}

TEST(the_largest_and_least_numbers_give_numbers)
{
    static const double large = MEASURE_MAX, least = MODERATED_VARIANCE_MIN;
    const double x[] = {large, -large, large, -large, 0, 0, 0, 0, large, large, -large, -large};
    struct moderated_row rows[3];

    for (int i = 0; i < 3; i++) {
        struct moderated_fit fit = test_equal(x, 3, 2, 2, i == 0 ? least : i == 1 ? 1 : 1 / least, rows);
        assert_false(isnan(fit.tau2) || isnan(fit.d0) || isnan(fit.s02) || isinf(fit.s02));
        for (int row = 0; row < 3; row++) {
            assert_true(isfinite(rows[row].estimate.error) && rows[row].estimate.error > 0);
            assert_true(rows[row].p >= 0 && rows[row].p <= 1);
        }
    }
}

TEST(no_rows)
{
    struct moderated_table t = {.old_runs = 2, .new_runs = 2};
    struct moderated_fit fit;

    OK(moderated_test(&t, &fit, NULL, NULL));
    assert_true(fit.df == 2 && fit.d0 == 0 && fit.tau2 == 0);
}

static void refused(double x, double v, size_t new_runs, const char *message)
{
    double xs[] = {1, x, 2, 3}, vs[] = {1, 1, v, 1}, scratch[2];
    struct moderated_table t = {.x = xs, .v = vs, .rows = 2, .old_runs = 1, .new_runs = new_runs};
    struct moderated_row rows[2];
    struct moderated_fit fit;
    struct error *err = moderated_test(&t, &fit, rows, scratch);

    assert_non_null(err);
    assert_string_equal(error_text(err), message);
    error_destroy(err);
}

TEST(what_is_no_number_is_refused)
{
    refused(NAN, 1, 1, "row 0, run 1: the measure nan is out of bounds");
    refused(-INFINITY, 1, 1, "row 0, run 1: the measure -inf is out of bounds");
    refused(2e6, 1, 1, "row 0, run 1: the measure 2e+06 is out of bounds");
    refused(1, 0, 1, "row 1, run 0: the variance 0 is out of bounds");
    refused(1, -1, 1, "row 1, run 0: the variance -1 is out of bounds");
    refused(1, INFINITY, 1, "row 1, run 0: the variance inf is out of bounds");
    refused(1, 1, 0, "no runs to compare: 1 old, 0 new");
}
