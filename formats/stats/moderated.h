/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moderated t test: which of many rows (functions, nodes of calls, lines) differ between two sets of runs.
 *
 * A few runs say little of how much a single row varies between runs, but there are many rows. So the variance of a row is
 * a compromise between its own and what all rows have in common, and not below what sampling alone causes. The t of that
 * variance has more degrees of freedom than the row's own (Smyth, Linear models and empirical Bayes methods, Statistical
 * Applications in Genetics and Molecular Biology 3, 2004; fitted as there, by the moments of the log variances).
 *
 * With a measure x of a row in each run, a logarithm, and v, the variance that sampling gives it:
 *
 *     s2   = variance of x between runs, pooled over both sets        df = old runs + new runs - 2
 *     vbar = mean of v over the row's runs
 *     tau2 = median of s2 - vbar over the rows that are measured best, 0 at least: what runs differ by
 *     e    = vbar + tau2                                              what s2 is expected to be
 *     z    = ln(s2/e) - digamma(df/2) + ln(df/2)
 *     d0   from trigamma(d0/2) = variance of z over rows - trigamma(df/2); INFINITY if that is not positive
 *     s02  = exp(mean of z + digamma(d0/2) - ln(d0/2))
 *     variance = max(least vbar, e (d0 s02 + df s2/e) / (d0 + df))
 *     difference = mean of x, new less old; error = sqrt(variance (1/old runs + 1/new runs))
 *     df of the row = min(df + d0, df * rows): no more than there was to learn from
 *
 * The rows measured best are those with the smaller half of vbar, three at least, and all that equal the largest of these.
 * s2/e counts as 1e-5 of its median at least (of 1, if the median is 0), so that rows that are the same in all runs do not
 * make the logarithm infinite. Of one row alone nothing is learned (d0 = 0): it has its own variance.
 *
 * `least` is 1 where samples are independent of each other, as the variance cannot be less then. It can be where a program
 * does the same work in every run and its CPU time is sampled at regular distances: there 0 leaves it to the runs.
 *
 * One run against one: df is 0, and nothing can be concluded (estimate.h); the error is that of sampling alone.
 */
#ifndef FORMATS_STATS_MODERATED_H
#define FORMATS_STATS_MODERATED_H

#include <stddef.h>

#include "formats/base/err.h"
#include "formats/stats/estimate.h"

/*
 * Rows by runs, one row behind the other; in each the old runs, then the new ones. Measures are at most
 * MEASURE_MAX in size (means.h), variances between MODERATED_VARIANCE_MIN and its inverse.
 */
struct moderated_table {
    const double *x, *v;
    size_t rows, old_runs, new_runs; /* one run of each at least */
    double least; /* of a variance, as a part of vbar: 0 to 1; under MODERATED_LEAST counts as that */
};
#define MODERATED_LEAST 1e-5
#define MODERATED_VARIANCE_MIN 1e-18

/* What all rows have in common. */
struct moderated_fit {
    double tau2; /* variance between runs, beside what sampling causes */
    double d0;   /* degrees of freedom that a row gets from the others; INFINITY: all vary alike */
    double s02;  /* the common variance, in units of e */
    double df;   /* of a row alone */
    double df_max; /* of a row, moderated: all that there was to learn from */
    double least;  /* the table's */
};

struct moderated_row {
    struct estimate estimate;
    double p;        /* two-sided */
    double sampling; /* vbar */
    double spread;   /* s2; 0 if df is 0 */
    double variance; /* of a run's measure, after moderation: what runs_needed() asks for */
};

/*
 * Fits and fills out[rows]. `scratch` has room for table->rows numbers. Fails with ERROR_FORMAT if a side has no run or a
 * number of the table is not finite or out of bounds; the message names its row and run, from 0.
 */
struct error *moderated_test(const struct moderated_table *table, struct moderated_fit *fit, struct moderated_row *out,
                             double *scratch);

/* The same for further rows of these runs, by what a fit learned from others. out[table->rows] */
struct error *moderated_apply(const struct moderated_table *table, const struct moderated_fit *fit, struct moderated_row *out);

/*
 * The moderated variance of a measure that has the variance `spread` between runs, with `df` degrees of freedom of its own (0: it
 * has one run), and of which sampling explains `sampling`. *row_df: its degrees of freedom, moderated.
 */
double moderated_variance(const struct moderated_fit *fit, double spread, double df, double sampling, double *row_df);

#endif
