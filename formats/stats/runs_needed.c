/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the least number of runs that is enough: enough stays enough for more runs. */
#include "formats/stats/runs_needed.h"

#include <math.h>
#include <stdbool.h>

#include "formats/stats/student.h"

static bool is_enough(const struct runs_wanted *w, uint64_t runs)
{
    double df = 2 * (double)runs - 2 + w->prior_df;
    double t = student_quantile(w->alpha, df) + student_quantile(1 - w->power, df);

    return (double)runs * w->distance * w->distance >= 2 * t * t * w->variance;
}

uint64_t runs_needed(const struct runs_wanted *w)
{
    /* Student's quantiles are larger than the normal ones, by which fewer are not enough. */
    double z = student_quantile(w->alpha, INFINITY) + student_quantile(1 - w->power, INFINITY);
    double least = fmax(ceil(2 * z * z * w->variance / (w->distance * w->distance)), RUNS_LEAST);

    if (!(least < RUNS_NOT_FEASIBLE))
        return RUNS_NOT_FEASIBLE;
    uint64_t few = (uint64_t)least - 1, enough = few + 1;
    for (uint64_t step = 1; !is_enough(w, enough); step *= 2) {
        few = enough;
        enough += step;
        if (enough >= RUNS_NOT_FEASIBLE)
            return RUNS_NOT_FEASIBLE;
    }
    while (enough - few > 1) {
        uint64_t middle = few + (enough - few) / 2;
        *(is_enough(w, middle) ? &enough : &few) = middle;
    }
    return enough;
}

double runs_alpha_of_many(double alpha, uint64_t rows)
{
    return alpha / (2 * (double)(rows ? rows : 1));
}
