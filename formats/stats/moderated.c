/* SPDX-License-Identifier: Apache-2.0 */
/* The moderated t test: a pass over the table for each row's own figures, the fit over all rows, and the t of each. */
#include "formats/stats/moderated.h"

#include <math.h>

#include "formats/stats/means.h"
#include "formats/stats/median.h"
#include "formats/stats/special.h"

enum { BEST_ROWS_LEAST = 3 };

static struct error *check(const struct moderated_table *t)
{
    size_t runs = t->old_runs + t->new_runs;

    if (!t->old_runs || !t->new_runs)
        return error_create(ERROR_FORMAT, "no runs to compare: %zu old, %zu new", t->old_runs, t->new_runs);
    for (size_t i = 0; i < t->rows * runs; i++) {
        if (!is_measure(t->x[i]))
            return error_create(ERROR_FORMAT, "row %zu, run %zu: the measure %g is out of bounds", i / runs, i % runs, t->x[i]);
        if (!(t->v[i] >= MODERATED_VARIANCE_MIN && t->v[i] <= 1 / MODERATED_VARIANCE_MIN))
            return error_create(ERROR_FORMAT, "row %zu, run %zu: the variance %g is out of bounds", i / runs, i % runs, t->v[i]);
    }
    return NULL;
}

/* The degrees of freedom of a row's own variance. */
static double own_df(const struct moderated_table *t)
{
    return (double)(t->old_runs + t->new_runs - 2);
}

/* What a row's runs say, without the other rows. */
static void measure(const struct moderated_table *t, size_t row, struct moderated_row *out)
{
    size_t runs = t->old_runs + t->new_runs;
    double df = own_df(t);
    const double *old = t->x + row * runs, *new = old + t->old_runs;
    double old_mean = mean_of(old, t->old_runs), new_mean = mean_of(new, t->new_runs);

    *out = (struct moderated_row){.sampling = mean_of(t->v + row * runs, runs)};
    out->estimate.difference = new_mean - old_mean;
    if (df > 0)
        out->spread = (squares_about(old, t->old_runs, old_mean) + squares_about(new, t->new_runs, new_mean)) / df;
}

static struct error *measure_rows(const struct moderated_table *t, struct moderated_row *out)
{
    TRY(check(t));
    for (size_t i = 0; i < t->rows; i++)
        measure(t, i, &out[i]);
    return NULL;
}

/* The median, over the rows that are measured best, of what runs differ by. */
static double between_runs(const struct moderated_row *rows, size_t count, double *scratch)
{
    size_t best = count / 2 > BEST_ROWS_LEAST ? count / 2 : BEST_ROWS_LEAST, chosen = 0;

    for (size_t i = 0; i < count; i++)
        scratch[i] = rows[i].sampling;
    sort_numbers(scratch, count);
    double limit = scratch[(best < count ? best : count) - 1];
    for (size_t i = 0; i < count; i++)
        if (rows[i].sampling <= limit)
            scratch[chosen++] = rows[i].spread - rows[i].sampling;
    sort_numbers(scratch, chosen);
    return fmax(median_of_sorted(scratch, chosen), 0);
}

/* Fits the scaled F distribution to the ratios of variances in `z`, which become their logarithms. */
static void fit_ratios(double *z, size_t count, struct moderated_fit *fit)
{
    double half = fit->df / 2, log_bias = log(half) - digamma(half);

    sort_numbers(z, count);
    double median = median_of_sorted(z, count), least = MODERATED_LEAST * (median > 0 ? median : 1);
    for (size_t i = 0; i < count; i++)
        z[i] = log(fmax(z[i], least)) + log_bias;
    double z_mean = mean_of(z, count), excess = squares_about(z, count, z_mean) / (double)(count - 1) - trigamma(half);
    double prior_half = excess > 0 ? trigamma_inverse(excess) : INFINITY;
    fit->d0 = 2 * prior_half;
    fit->s02 = exp(z_mean + (isfinite(prior_half) ? digamma(prior_half) - log(prior_half) : 0));
}

static void fit_rows(const struct moderated_row *rows, size_t count, struct moderated_fit *fit, double *scratch)
{
    if (!(fit->df > 0) || !count)
        return;
    fit->tau2 = between_runs(rows, count, scratch);
    if (count == 1)
        return;
    for (size_t i = 0; i < count; i++)
        scratch[i] = rows[i].spread / (rows[i].sampling + fit->tau2);
    fit_ratios(scratch, count, fit);
}

double moderated_variance(const struct moderated_fit *fit, double spread, double df, double sampling, double *row_df)
{
    double expected = sampling + fit->tau2, ratio = spread / expected;

    *row_df = fmin(df + fit->d0, fit->df_max);
    if (isinf(fit->d0))
        ratio = fit->s02;
    else if (fit->d0 + df > 0)
        ratio = (fit->d0 * fit->s02 + df * ratio) / (fit->d0 + df);
    else
        ratio = 1;
    return fmax(expected * ratio, fmax(fit->least, MODERATED_LEAST) * sampling);
}

/* From rows that are measured to their tests. */
static void test_rows(const struct moderated_table *t, const struct moderated_fit *fit, struct moderated_row *rows)
{
    double parts = 1 / (double)t->old_runs + 1 / (double)t->new_runs;

    for (size_t i = 0; i < t->rows; i++) {
        struct moderated_row *row = &rows[i];
        row->variance = moderated_variance(fit, row->spread, own_df(t), row->sampling, &row->estimate.df);
        row->estimate.error = sqrt(row->variance * parts);
        row->p = estimate_p(&row->estimate);
    }
}

struct error *moderated_test(const struct moderated_table *table, struct moderated_fit *fit, struct moderated_row *out,
                             double *scratch)
{
    TRY(measure_rows(table, out));
    *fit = (struct moderated_fit){.s02 = 1, .df = own_df(table), .least = table->least};
    fit->df_max = fit->df * (double)table->rows;
    fit_rows(out, table->rows, fit, scratch);
    test_rows(table, fit, out);
    return NULL;
}

struct error *moderated_apply(const struct moderated_table *table, const struct moderated_fit *fit, struct moderated_row *out)
{
    TRY(measure_rows(table, out));
    test_rows(table, fit, out);
    return NULL;
}
