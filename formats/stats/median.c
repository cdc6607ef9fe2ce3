/* SPDX-License-Identifier: Apache-2.0 */
/* Medians by sorting. */
#include "formats/stats/median.h"

#include <stdlib.h>

static int compare_numbers(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void sort_numbers(double *numbers, size_t count)
{
    if (count)
        qsort(numbers, count, sizeof *numbers, compare_numbers);
}

double median_of_sorted(const double *numbers, size_t count)
{
    return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
}

static int compare_weighted(const void *a, const void *b)
{
    const struct weighted_number *x = a, *y = b;

    return x->number != y->number ? compare_numbers(&x->number, &y->number) : compare_numbers(&x->weight, &y->weight);
}

double weighted_median(struct weighted_number *numbers, size_t count)
{
    double all = 0, reached = 0;
    size_t at = 0;

    qsort(numbers, count, sizeof *numbers, compare_weighted);
    for (size_t i = 0; i < count; i++)
        all += numbers[i].weight;
    while (at + 1 < count) {
        reached += numbers[at].weight;
        if (reached >= all / 2)
            break;
        at++;
    }
    return numbers[at].number;
}
