/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Welch's t test, for one measure that is one test of its own: the total.
 *
 *     error^2 = s1^2/n1 + s2^2/n2
 *     df = error^4 / ((s1^2/n1)^2/(n1 - 1) + (s2^2/n2)^2/(n2 - 1))
 *
 * (Welch, The generalization of "Student's" problem when several different population variances are involved, Biometrika
 * 34, 1947.)
 */
#ifndef FORMATS_STATS_WELCH_H
#define FORMATS_STATS_WELCH_H

#include <stddef.h>

#include "formats/base/err.h"
#include "formats/stats/estimate.h"

struct welch {
    struct estimate estimate;
    double variance; /* of a run, the mean of both sides: what runs_needed() asks for; 0 if df is 0 */
};

/*
 * `old` and `new` are logarithms, in runs. A side of one run is taken to vary as the other does (df: that of the other). One run
 * against one, and runs that do not vary at all, as copies of one do not: df is 0, nothing can be concluded.
 * Fails with ERROR_FORMAT if a side has no run, or a measure is not finite or over MEASURE_MAX (means.h).
 */
struct error *welch_test(const double *old, size_t old_runs, const double *new, size_t new_runs, struct welch *out);

#endif
