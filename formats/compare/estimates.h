/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the rows: each family by the moderated t test, what only one side has against 0, the total by Welch's, and then one
 * correction for false discoveries over all rows but the total.
 */
#ifndef FORMATS_COMPARE_ESTIMATES_H
#define FORMATS_COMPARE_ESTIMATES_H

#include "formats/compare/row.h"

/* Fills in the rows' figures, all but their answers and the runs that are needed. */
struct error *estimates_test(struct test_rows *r);
/* How many runs a side would find a change of this size in the list, of which `alpha` may be false; 0: not known. */
double estimates_runs_needed(const struct test_rows *r, const struct test_row *row, double alpha);
/* Corrects again for the number of rows, of which those that others explain are no discoveries. */
struct error *estimates_correct(struct test_rows *r);
/* Fills in the row of the total; untested if it cannot be compared. */
struct error *estimates_total(const struct test_rows *r, bool comparable, double alpha, struct compare_row *out);
/* Fills in the shown figures of a row that has a new estimate. */
void estimates_show(struct test_row *row);

#endif
