/* SPDX-License-Identifier: Apache-2.0 */
/* q values: from the largest p down, each the least of p * count / rank so far. */
#include "formats/stats/discoveries.h"

#include <stdint.h>
#include <stdlib.h>

static double chance(double p)
{
    return p >= 0 && p <= 1 ? p : 1;
}

static int compare_chances(const void *a, const void *b, void *ctx)
{
    const double *p = ctx;
    double x = chance(p[*(const size_t *)a]), y = chance(p[*(const size_t *)b]);

    return (x > y) - (x < y);
}

void discovery_q(const double *p, size_t count, double *q, size_t *order)
{
    double least = 1;

    for (size_t i = 0; i < count; i++)
        order[i] = i;
    if (count)
        qsort_r(order, count, sizeof *order, compare_chances, (void *)(uintptr_t)p);
    for (size_t rank = count; rank > 0; rank--) {
        double scaled = chance(p[order[rank - 1]]) * (double)count / (double)rank;
        least = scaled < least ? scaled : least;
        q[order[rank - 1]] = least;
    }
}
