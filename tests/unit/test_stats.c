/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formats/stats: distributions and what rests on them. Expected values come from mpmath (40 digits) and scipy, by what stands
 * beside them; tests/tools/stats_reference.py compares many more. The moderated t test: test_moderated.c.
 */
#include "tests/unit/test.h"

#include <math.h>

#include "formats/stats/discoveries.h"
#include "formats/stats/runs_needed.h"
#include "formats/stats/size_factors.h"
#include "formats/stats/special.h"
#include "formats/stats/spending.h"
#include "formats/stats/student.h"
#include "formats/stats/welch.h"

static void near(double got, double wanted, double digits)
{
    if (!(fabs(got - wanted) <= digits * fabs(wanted)))
        fail_msg("%.17g, not %.17g", got, wanted);
}

/* mpmath.digamma(x), psi(1, x) */
TEST(digamma_and_trigamma)
{
    static const double values[][3] = {
        {1e-6, -1000000.5772140201, 1000000000001.645}, {0.5, -1.9635100260214235, 4.934802200544679},
        {1, -0.5772156649015329, 1.6449340668482264},   {2.5, 0.7031566406452432, 0.49035775610023485},
        {9.99, 2.250700372831201, 0.10527695014824179}, {10, 2.251752589066721, 0.10516633568168575},
        {1e6, 13.815510057964191, 1.0000005000001667e-06},
    };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        near(digamma(values[i][0]), values[i][1], 1e-13);
        near(trigamma(values[i][0]), values[i][2], 1e-13);
        near(trigamma_inverse(values[i][2]), values[i][0], 1e-12);
    }
    for (double x = 1e-300; x < 1e30; x *= 10)
        near(trigamma(trigamma_inverse(x)), x, 1e-12);
}

/* loggamma(a) + loggamma(b) - loggamma(a + b); betainc(a, b, 0, x, regularized=True) */
TEST(beta)
{
    static const double logs[][3] = {
        {0.5, 0.5, 1.1447298858494002},    {3, 4, -4.0943445622221},      {0.5, 2500, -3.339608062503779},
        {20, 30, -33.968820791977386},     {1e10, 0.5, -10.940560522033028}, {0.001, 5, 6.905672657062074},
        {1e8, 1e9, -335099715.32790864},
    };
    static const double parts[][4] = {
        {0.5, 0.5, 0.25, 0.3333333333333333},  {2, 3, 0.5, 0.6875},
        {10, 0.5, 0.9, 0.15164090963470997},   {50, 20, 0.7, 0.38250924838123324},
        {0.5, 4, 1e-8, 0.0002187499978125},    {100, 100, 0.25, 1.7814755217536814e-14},
    };

    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        near(log_beta(logs[i][0], logs[i][1]), logs[i][2], 1e-13);
        near(log_beta(logs[i][1], logs[i][0]), logs[i][2], 1e-13);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double a = parts[i][0], b = parts[i][1], x = parts[i][2];
        near(beta_incomplete(x, 1 - x, a, b), parts[i][3], 1e-12);
        near(beta_incomplete(1 - x, x, b, a), 1 - parts[i][3], 1e-12);
    }
    assert_true(beta_incomplete(0, 1, 2, 3) == 0 && beta_incomplete(1, 0, 2, 3) == 1);
}

/* betainc(df/2, 1/2, 0, df/(df + t^2), regularized=True) / 2; erfc(t/sqrt(2)) / 2; above df 1000 the density integrated */
TEST(tail_of_t)
{
    static const double values[][3] = {
        {0.001, 3, 0.49963244748473046},      {1, 1, 0.25},
        {2, 4, 0.058058261758407795},         {2.1, 18, 0.025045202854784177},
        {3.3, 36.5, 0.0010829726566936335},   {5, 7, 0.0007826389765864123},
        {12, 1000, 2.1620286933872636e-31},   {30, 9, 1.2418523520791312e-10},
        {1e6, 2, 4.9999999999925e-13},        {2.5, 19999, 0.006213637264618286},
        {2.5, 20000, 0.0062136370659971124},  {2.5, 1e6, 0.006209744751081623},
        {8, 100000, 6.286959938128186e-16},   {1.96, INFINITY, 0.024997895148220435},
        {37, INFINITY, 5.725571222524577e-300}, {1e100, 3, 1.1026577908435841e-300},
    };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        near(student_upper(values[i][0], values[i][1]), values[i][2], 1e-11);
        near(student_upper(-values[i][0], values[i][1]), 1 - values[i][2], 1e-11);
    }
    assert_true(student_upper(0, 5) == 0.5);
    assert_true(student_upper(INFINITY, 5) == 0 && student_upper(-INFINITY, 5) == 1);
    /* Nothing is known of the spread. */
    assert_true(student_upper(1e300, 0) == 0.5 && student_upper(-7, 0) == 0.5);
    near(student_upper(1e200, 1), 1e-200 / M_PI, 1e-11);
}

/* The root of ln P(T > t) = ln p, by mpmath.findroot */
TEST(quantiles_of_t)
{
    static const double values[][3] = {
        {0.05, 1, 6.313751514675043},    {0.05, 4, 2.1318467863266504},           {0.025, 18, 2.1009220402410387},
        {0.2, 6, 0.9057032851805314},    {0.001, 38, 3.3190296551103575},         {1e-9, 8, 29.289321118225654},
        {1e-12, 3e4, 7.037444292265746}, {0.05, INFINITY, 1.6448536269514726},    {1e-300, INFINITY, 37.0470962993612},
        {0.4999, 5, 0.0002634305560701855},
    };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        near(student_quantile(values[i][0], values[i][1]), values[i][2], 1e-11);
    near(student_quantile(0.95, 4), -2.1318467863266504, 1e-11);
    assert_true(student_quantile(0.5, 4) == 0);
    assert_true(student_quantile(0, 4) == INFINITY && student_quantile(1, 4) == -INFINITY);
    assert_true(student_quantile(0.05, 0) == INFINITY && student_quantile(0.95, 0) == -INFINITY);
    assert_true(student_quantile(1e-300, 0.1) == INFINITY);
    for (double p = 1e-307; p < 0.5; p *= 10)
        for (double df = 1; df < 1e17; df *= 7)
            near(student_upper(student_quantile(p, df), df), p, 1e-10);
}

/* b, a: scipy.stats.ttest_ind(b, a, equal_var=False); of one run, equal_var=True */
TEST(welch)
{
    static const double old[] = {10.01, 10.03, 9.98, 10.02}, new[] = {10.08, 10.11, 10.03};
    struct welch w;
    double low, high;

    OK(welch_test(old, 4, new, 3, &w));
    near(w.estimate.difference, 0.06333333333333258, 1e-9);
    near(w.estimate.error, 0.02571208103423581, 1e-9);
    near(w.estimate.df, 2.861386138613822, 1e-9);
    near(estimate_p(&w.estimate), 0.09473149935572221, 1e-9);
    near(w.variance, 0.00105, 1e-9);
    estimate_interval(&w.estimate, 0.9, &low, &high);
    near(low, 0.0016095359669070497, 1e-9);
    near(high, 0.1250571306997581, 1e-9);

    OK(welch_test(old, 4, new, 1, &w));
    near(w.estimate.error, 0.02415229457698188, 1e-9);
    assert_true(w.estimate.df == 3);
    near(estimate_p(&w.estimate), 0.06258996282161734, 1e-9);
    OK(welch_test(old, 1, new, 3, &w));
    near(w.estimate.error, 0.04666666666666677, 1e-9);
    assert_true(w.estimate.df == 2);
}

TEST(nothing_follows_from_runs_that_do_not_vary)
{
    static const double old[] = {20.1, 20.1, 20.1, 20.1, 20.1, 20.1, 20.1}, new[] = {20.2, 20.2, 20.2};
    struct welch w;
    double low, high;

    for (int i = 0; i < 2; i++) {
        OK(i ? welch_test(old, 7, new, 3, &w) : welch_test(old, 1, new, 1, &w));
        near(w.estimate.difference, 0.1, 1e-9);
        assert_true(w.estimate.df == 0 && w.estimate.error == 0 && w.variance == 0);
        assert_true(estimate_p(&w.estimate) == 1);
        assert_true(estimate_p_above(&w.estimate, 0) == 0.5 && estimate_p_below(&w.estimate, 0) == 0.5);
        assert_int_equal(estimate_judge(&w.estimate, 0.01, 0.05), ESTIMATE_CANNOT_TELL);
        estimate_interval(&w.estimate, 0.9, &low, &high);
        assert_true(low == -INFINITY && high == INFINITY);
    }
}

TEST(an_answer_needs_the_interval_on_one_side)
{
    struct estimate e = {.error = 0.01, .df = 18};
    double low, high;

    estimate_interval(&e, 0.9, &low, &high);
    e.difference = 0.02 + high * 1.0001;
    assert_int_equal(estimate_judge(&e, 0.02, 0.05), ESTIMATE_ABOVE);
    e.difference = 0.02 + high * 0.9999;
    assert_int_equal(estimate_judge(&e, 0.02, 0.05), ESTIMATE_CANNOT_TELL);
    e.difference = 0.02 + low * 0.9999;
    assert_int_equal(estimate_judge(&e, 0.02, 0.05), ESTIMATE_CANNOT_TELL);
    e.difference = 0.02 + low * 1.0001;
    assert_int_equal(estimate_judge(&e, 0.02, 0.05), ESTIMATE_BELOW);
    near(estimate_p_above(&e, 0.02) + estimate_p_below(&e, 0.02), 1, 1e-12);
}

/* scipy.stats.false_discovery_control(p) */
TEST(q_values)
{
    static const double p[] = {0.01, 0.04, 0.03, 0.005, 0.8, 0.03}, wanted[] = {0.03, 0.048, 0.045, 0.03, 0.8, 0.045};
    static const double odd[] = {NAN, 0.01, -1, 7};
    double q[6];
    size_t order[6];

    discovery_q(p, 6, q, order);
    for (int i = 0; i < 6; i++)
        near(q[i], wanted[i], 1e-12);
    discovery_q(odd, 4, q, order);
    assert_true(q[0] == 1 && q[1] == 0.04 && q[2] == 1 && q[3] == 1);
    discovery_q(p, 1, q, order);
    assert_true(q[0] == 0.01);
    discovery_q(p, 0, q, order);
}

TEST(size_factors)
{
    static const double times[] = {100, 110, 95, 50, 55, 49, 10, 22, 9, 7, 7.5, 7, 1, 0, 2};
    static const double doubled[] = {500, 500, 1000, 50, 50, 50, 60, 60, 60, 70, 70, 70};
    struct weighted_number scratch[5];
    double factors[3];

    /* The median of time over gmean(row), by time: each of the large rows weighs a twentieth of all. */
    size_factors(times, 5, 3, factors, scratch);
    near(factors[0], 0.9752749729936165, 1e-12);
    near(factors[1], 1.0839783003235695, 1e-12);
    near(factors[2], 0.9361630775521732, 1e-12);
    /* A row with most of the time that doubles in a run does not hide that. */
    size_factors(doubled, 4, 3, factors, scratch);
    near(factors[0], 1, 1e-12);
    near(factors[2], 1, 1e-12);
    /* One row less has time in all runs than are needed. */
    size_factors(times + 6, 3, 3, factors, scratch);
    assert_true(factors[0] == 1 && factors[1] == 1 && factors[2] == 1);
}

/* The powers behind these, from scipy.stats.nct: 0.82 and 0.79 with 14 and 13 runs, 0.89 and 0.80 with 5 and 4, ... */
TEST(runs_needed)
{
    static const struct {
        double cv, change;
        uint64_t runs;
    } values[] = {
        {0.005, 0.01, 5},   {0.005, 0.02, 3},  {0.01, 0.01, 14}, {0.01, 0.02, 5}, {0.02, 0.01, 51},  {0.02, 0.02, 14},
        {0.02, 0.05, 4},    {0.05, 0.01, 313}, {0.05, 0.02, 80}, {0.05, 0.1, 5},  {0.2, 0.01, 4997}, {0.2, 0.05, 209},
        {0.2, 0.1, 56},
    };
    struct runs_wanted w = {.alpha = 0.05, .power = 0.8};

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        w.distance = log1p(values[i].change);
        w.variance = values[i].cv * values[i].cv;
        assert_int_equal(runs_needed(&w), values[i].runs);
        w.distance = -w.distance;
        assert_int_equal(runs_needed(&w), values[i].runs);
    }
    /* Of 40 rows, with the variance known: 33.1 variance / distance^2. */
    w = (struct runs_wanted){.distance = 0.01, .variance = 0.01, .prior_df = INFINITY, .power = 0.8};
    w.alpha = runs_alpha_of_many(0.05, 40);
    assert_in_range(runs_needed(&w), 3300, 3320);
    w.distance = 0;
    assert_int_equal(runs_needed(&w), RUNS_NOT_FEASIBLE);
    w.distance = 1e-9;
    assert_int_equal(runs_needed(&w), RUNS_NOT_FEASIBLE);
}

/* alpha * (log(1 + (e - 1) * k / n) - log(1 + (e - 1) * (k - 1) / n)) */
TEST(looks_spend_all_of_the_error)
{
    assert_true(fabs(spending_level(0.05, 1, 1) - 0.05) < 1e-15);
    near(spending_level(0.05, 1, 18), 0.004558722955406983, 1e-12);
    near(spending_level(0.05, 2, 18), 0.0041775914578274995, 1e-11);
    near(spending_level(0.05, 18, 18), 0.0017874633389214857, 1e-11);
    for (uint32_t looks = 1; looks < 100; looks++) {
        double sum = 0;
        for (uint32_t k = 1; k <= looks; k++)
            sum += spending_level(0.01, k, looks);
        near(sum, 0.01, 1e-12);
    }
}
