/* SPDX-License-Identifier: Apache-2.0 */
/* Means of runs, and the bounds of what the tests take. */
#ifndef FORMATS_STATS_MEANS_H
#define FORMATS_STATS_MEANS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* The largest size of a measure. Measures are logarithms, and that of any double is below 750. */
#define MEASURE_MAX 1e6

static inline bool is_measure(double x)
{
    return fabs(x) <= MEASURE_MAX;
}

/* 0 of none. */
static inline double mean_of(const double *x, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += x[i];
    return count ? sum / (double)count : 0;
}

/* The sum of the squares of what the numbers differ from their mean. */
static inline double squares_about(const double *x, size_t count, double mean)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum;
}

#endif
