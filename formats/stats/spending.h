/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking more than once. Who records runs until a rule is decided tests at every look, and each look may err. So the error
 * of all looks together is spent look by look (Lan and DeMets, Discrete sequential boundaries for clinical trials,
 * Biometrika 70, 1983), at equal distances, by their function that is like Pocock's bounds:
 *
 *     spent(k) = alpha ln(1 + (e - 1) k / looks)          spent(looks) = alpha
 *
 * Look k is tested at spent(k) - spent(k - 1). By Bonferroni's inequality the chance that any look errs is alpha at most,
 * however much the looks have in common. (Bounds that rely on what they have in common would be wider; they hold only for
 * looks that are made exactly as planned.)
 */
#ifndef FORMATS_STATS_SPENDING_H
#define FORMATS_STATS_SPENDING_H

#include <stdint.h>

/* The level, one-sided as alpha is, at which look `look` of `looks` is tested; 1 <= look <= looks. Of one look: alpha. */
double spending_level(double alpha, uint32_t look, uint32_t looks);

#endif
