/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many tests in one list: how many of those that are shown as changed may have changed by chance alone (Benjamini and
 * Hochberg, Controlling the false discovery rate, Journal of the Royal Statistical Society B 57, 1995).
 *
 * The q of a test is the least share of false discoveries at which it is still among them: the least p * count / rank of
 * the tests with its p or a larger one, 1 at most. Those with q <= 0.05 are false to 5 % on average.
 */
#ifndef FORMATS_STATS_DISCOVERIES_H
#define FORMATS_STATS_DISCOVERIES_H

#include <stddef.h>

/* Fills q[count]. What is no number between 0 and 1 counts as 1. `order` is scratch, `count` numbers. q may not be p. */
void discovery_q(const double *p, size_t count, double *q, size_t *order);

#endif
