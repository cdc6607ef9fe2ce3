/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a difference and its error: Student's t. */
#include "formats/stats/estimate.h"

#include <math.h>

#include "formats/stats/student.h"

/* How many standard errors the difference is over the threshold. */
static double distance(const struct estimate *e, double threshold)
{
    return e->df > 0 ? (e->difference - threshold) / e->error : 0;
}

double estimate_p(const struct estimate *e)
{
    return fmin(2 * student_upper(fabs(distance(e, 0)), e->df), 1);
}

double estimate_p_above(const struct estimate *e, double threshold)
{
    return student_upper(distance(e, threshold), e->df);
}

double estimate_p_below(const struct estimate *e, double threshold)
{
    return student_upper(-distance(e, threshold), e->df);
}

void estimate_interval(const struct estimate *e, double confidence, double *low, double *high)
{
    double t = student_quantile((1 - confidence) / 2, e->df);
    double half = e->df > 0 ? t * e->error : INFINITY;

    *low = e->difference - half;
    *high = e->difference + half;
}

enum estimate_answer estimate_judge(const struct estimate *e, double threshold, double alpha)
{
    if (estimate_p_above(e, threshold) < alpha)
        return ESTIMATE_ABOVE;
    return estimate_p_below(e, threshold) < alpha ? ESTIMATE_BELOW : ESTIMATE_CANNOT_TELL;
}
