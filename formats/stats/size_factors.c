/* SPDX-License-Identifier: Apache-2.0 */
/* Median of ratios, a run at a time. */
#include "formats/stats/size_factors.h"

#include <math.h>
#include <stdbool.h>

/* The logarithm of the geometric mean of the row, and its mean; false: it lacks time in a run. */
static bool row_means(const double *times, size_t runs, double *log_mean, double *mean)
{
    *log_mean = *mean = 0;
    for (size_t r = 0; r < runs; r++) {
        if (!(times[r] > 0 && isfinite(times[r])))
            return false;
        *log_mean += log(times[r]) / (double)runs;
        *mean += times[r] / (double)runs;
    }
    return true;
}

/* The most that a row's time may weigh. */
static double weight_most(const double *times, size_t rows, size_t runs)
{
    double sum = 0, log_mean, mean;

    for (size_t i = 0; i < rows; i++)
        if (row_means(times + i * runs, runs, &log_mean, &mean))
            sum += mean;
    return sum * SIZE_FACTOR_WEIGHT_MOST;
}

void size_factors(const double *times, size_t rows, size_t runs, double *factors, struct weighted_number *scratch)
{
    double most = weight_most(times, rows, runs);

    for (size_t r = 0; r < runs; r++) {
        size_t count = 0;
        for (size_t i = 0; i < rows; i++) {
            double log_mean, mean;
            if (row_means(times + i * runs, runs, &log_mean, &mean))
                scratch[count++] = (struct weighted_number){log(times[i * runs + r]) - log_mean, fmin(mean, most)};
        }
        factors[r] = count < SIZE_FACTOR_ROWS_LEAST ? 1 : exp(weighted_median(scratch, count));
    }
}
