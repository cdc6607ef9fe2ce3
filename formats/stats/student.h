/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Student's t distribution. `df`, its degrees of freedom, need not be whole. INFINITY stands for the normal distribution.
 * 0 or less stands for the limit, in which nothing is known of the spread: any t has 1/2 above it.
 *
 * Right to 1e-10 relative, far into the tails: down to 1e-300. No result is a NaN.
 */
#ifndef FORMATS_STATS_STUDENT_H
#define FORMATS_STATS_STUDENT_H

/*
 * P(T > t). Below df 20,000 half of the incomplete beta function I(df/2, 1/2) at df / (df + t^2) (Abramowitz and Stegun
 * 26.7.1); above it the normal deviate that belongs to t, by three terms (Hill, Algorithm 395, CACM 13, 1970).
 */
double student_upper(double t, double df);
/* The t with P(T > t) = p; 0 <= p <= 1. Infinite for 0 and 1, and where no double is large enough. */
double student_quantile(double p, double df);

#endif
