/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the rows that moved are the cause. When one part of a whole grows, the shares of its siblings fall; and with it
 * grow all that call it, whose siblings' shares fall, too. So what is found to be a cause is taken out of the sums of its
 * callers, and the rest is tested again: what then did not move owed it to the cause.
 *
 * From the leaves to the root, as a call owes its time to what is below it. Among siblings the cause is the one without
 * which the others moved least, among themselves and in their own time; changed code counts as being ten times as likely.
 * What is new, or gone, always is.
 */
#ifndef FORMATS_COMPARE_PEEL_H
#define FORMATS_COMPARE_PEEL_H

#include "formats/compare/row.h"

/*
 * Answers the parts whose p is `p_most` at most: slower or faster, or what they owe it to (`because` is a number in
 * r->rows). Estimates of siblings become those without the cause.
 */
struct error *peel(struct test_rows *r, double p_most);

#endif
