/* SPDX-License-Identifier: Apache-2.0 */
/* Medians. The numbers are finite. */
#ifndef FORMATS_STATS_MEDIAN_H
#define FORMATS_STATS_MEDIAN_H

#include <stddef.h>

/* Sorts upwards. */
void sort_numbers(double *numbers, size_t count);
/* Of numbers that sort_numbers() has sorted, one at least: the middle one, or the mean of the two in the middle. */
double median_of_sorted(const double *numbers, size_t count);

/* A number that counts by its weight, over 0. */
struct weighted_number {
    double number, weight;
};
/* The first of the numbers, upwards, at which half of all weight is reached. Sorts them; there is one at least. */
double weighted_median(struct weighted_number *numbers, size_t count);

#endif
