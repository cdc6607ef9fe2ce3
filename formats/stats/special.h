/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The special functions that the distributions and the fit of variances need, for positive arguments. Right to some
 * 1e-13 relative, except next to the zero of digamma, where that is absolute.
 *
 * Formulas, by number in Abramowitz and Stegun, Handbook of Mathematical Functions (1964): 6.1.40 (ln gamma), 6.3.18
 * (digamma), 6.4.11 (its derivatives), 26.5.8 (continued fraction of the incomplete beta function).
 */
#ifndef FORMATS_STATS_SPECIAL_H
#define FORMATS_STATS_SPECIAL_H

/* The derivative of ln gamma(x), and the derivative of that. x > 0. */
double digamma(double x);
double trigamma(double x);
/* The y with trigamma(y) = x, for x > 0; by Newton's method on 1/trigamma, which is nearly a straight line (Smyth 2004,
 * appendix). */
double trigamma_inverse(double x);

/* ln B(a, b) = ln gamma(a) + ln gamma(b) - ln gamma(a + b), without the loss of digits that this sum has where an
 * argument is large. a, b > 0. */
double log_beta(double a, double b);
/*
 * I_x(a, b), the regularized incomplete beta function: the part of a beta distribution that lies below x. `y` is 1 - x:
 * the caller gives both, so that neither has lost digits. 0 <= x, y <= 1; a, b > 0; time grows with the root of the larger
 * one.
 */
double beta_incomplete(double x, double y, double a, double b);

#endif
