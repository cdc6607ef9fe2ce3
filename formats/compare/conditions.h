/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May runs be compared? What they were recorded on and how must be alike: a difference between two machines, or between two
 * rates, is none of the program. And nothing is concluded from too few runs, or from one that lost too much.
 */
#ifndef FORMATS_COMPARE_CONDITIONS_H
#define FORMATS_COMPARE_CONDITIONS_H

#include "formats/compare/comparison.h"
#include "formats/compare/sides.h"

/*
 * The fewest runs of both sides together that something is concluded from. With 3 against 1, unchanged programs had some
 * change reported in 9 to 19 of 100 comparisons, at 5 % nominal; with 3 against 3, or 5 against 1, it holds.
 */
enum { CONDITIONS_RUNS_LEAST = 6 };
/* The share of its ticks that a run may lose. */
#define CONDITIONS_LOST_MOST 0.01
/* A run with fewer samples, and so small a share of what a run has on average, says only how few they are. */
#define CONDITIONS_SAMPLES_LEAST 50
#define CONDITIONS_SIZE_LEAST 0.1

/*
 * Adds what is wrong to out->problems and fills in out->by_work and out->conclusive. Runs that are not alike are
 * ERROR_UNSUPPORTED, unless forced; the message names all that differs. Runs that lost too much, or are too small, are
 * taken out of `s`, if enough others are left; else nothing is concluded.
 */
struct error *conditions_check(struct sides *s, bool force, struct comparison *out);
/* Were the runs of both sides made by the same versions of CPython? Else their code cannot be compared. */
bool conditions_same_pythons(const struct sides *s);

#endif
