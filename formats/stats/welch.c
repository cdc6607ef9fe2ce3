/* SPDX-License-Identifier: Apache-2.0 */
/* Welch's t test of two sides of runs. */
#include "formats/stats/welch.h"

#include <float.h>

#include "formats/stats/means.h"

struct side {
    double mean, variance, df;
};

static struct error *measure_side(const char *name, const double *x, size_t runs, struct side *out)
{
    if (!runs)
        return error_create(ERROR_FORMAT, "there is no %s run to compare", name);
    for (size_t i = 0; i < runs; i++)
        if (!is_measure(x[i]))
            return error_create(ERROR_FORMAT, "%s run %zu: the measure %g is out of bounds", name, i, x[i]);
    *out = (struct side){.mean = mean_of(x, runs), .df = (double)(runs - 1)};
    out->variance = runs > 1 ? squares_about(x, runs, out->mean) / out->df : 0;
    return NULL;
}

/* Is a variance no more than what adding up equal numbers of that size makes? */
static bool is_rounding(double variance, double size)
{
    double least = 16 * DBL_EPSILON * fmax(size, 1);

    return variance <= least * least;
}

struct error *welch_test(const double *old, size_t old_runs, const double *new, size_t new_runs, struct welch *out)
{
    struct side a, b;

    TRY(measure_side("old", old, old_runs, &a));
    TRY(measure_side("new", new, new_runs, &b));
    *out = (struct welch){.estimate.difference = b.mean - a.mean};
    if (!a.df)
        a.variance = b.variance;
    if (!b.df)
        b.variance = a.variance;
    double a_part = a.variance / (double)old_runs, b_part = b.variance / (double)new_runs, sum = a_part + b_part;
    if (is_rounding(sum, fmax(fabs(a.mean), fabs(b.mean))))
        return NULL;
    out->variance = (a.variance + b.variance) / 2;
    out->estimate.error = sqrt(sum);
    if (a.df && b.df)
        out->estimate.df = sum * sum / (a_part * a_part / a.df + b_part * b_part / b.df);
    else
        out->estimate.df = a.df + b.df;
    return NULL;
}
