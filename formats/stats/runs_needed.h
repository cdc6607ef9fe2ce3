/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many runs a side a wanted answer takes.
 *
 *     runs = 2 (t(alpha) + t(1 - power))^2 variance / distance^2
 *
 * with the upper quantiles t of Student's distribution at df = 2 runs - 2 + prior_df, so that the number solves itself: the
 * least that fulfils it. For many runs and alpha 0.05, power 0.8 this is 12.4 variance / distance^2.
 */
#ifndef FORMATS_STATS_RUNS_NEEDED_H
#define FORMATS_STATS_RUNS_NEEDED_H

#include <stdint.h>

struct runs_wanted {
    double distance; /* of the true difference from the threshold, on the log scale; its sign does not matter */
    double variance; /* of the measure between runs: that of welch.h or moderated.h */
    double prior_df; /* d0 of the moderated test; 0: of Welch's; INFINITY: normal quantiles */
    double alpha;    /* one-sided, between 0 and 1/2; see runs_alpha_of_many() */
    double power;    /* the chance to be told; over 1/2, under 1 */
};

enum { RUNS_LEAST = 3 };
/* So many as to be out of the question, or no number at all (a distance of 0). */
#define RUNS_NOT_FEASIBLE UINT64_C(1000000000)

/* RUNS_LEAST to RUNS_NOT_FEASIBLE. */
uint64_t runs_needed(const struct runs_wanted *w);

/*
 * The level at which one row of `rows` that really changed, and it alone, is found in a list with `alpha` of false
 * discoveries: its p, which is two-sided, has to be alpha / rows (discoveries.h). With 40 rows and alpha 0.05 some
 * 33 variance / distance^2 runs are needed. Fewer are if more rows changed.
 */
double runs_alpha_of_many(double alpha, uint64_t rows);

#endif
