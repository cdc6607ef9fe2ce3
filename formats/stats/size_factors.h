/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much larger a run is than the others, where nobody counted its work: the median over rows of the ratio of the row's
 * time to its geometric mean over the runs (Anders and Huber, Differential expression analysis for sequence count data,
 * Genome Biology 11, 2010), weighted by time. A row that grew does not make the others look smaller, as shares of all do.
 *
 * A row weighs at most a twentieth of all time. One that has most of it would be the median itself: if it grew, it would seem
 * not to, and all others to shrink.
 */
#ifndef FORMATS_STATS_SIZE_FACTORS_H
#define FORMATS_STATS_SIZE_FACTORS_H

#include <stddef.h>

#include "formats/stats/median.h"

/* Rows that have time in all runs there must be, or all factors are 1. */
enum { SIZE_FACTOR_ROWS_LEAST = 3 };
#define SIZE_FACTOR_WEIGHT_MOST 0.05

/* factors[runs] from times[rows][runs], which are 0 or more; `scratch` has room for `rows` numbers. Times that are not
 * finite count as none. */
void size_factors(const double *times, size_t rows, size_t runs, double *factors, struct weighted_number *scratch);

#endif
