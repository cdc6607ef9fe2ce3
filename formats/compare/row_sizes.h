/* SPDX-License-Identifier: Apache-2.0 */
/* How large things and runs are: the tables that rows are made from, and what times of a run are divided by. */
#ifndef FORMATS_COMPARE_ROW_SIZES_H
#define FORMATS_COMPARE_ROW_SIZES_H

#include "formats/compare/row.h"

/* Fills in the tree, the lines, and the measures of things with `least` samples a run. */
struct error *row_sizes_measure(struct test_rows *r, double least);
/* Fills in `factors` and `all`: the runs' work if all have it (by_work), else their size factors, 1 on average. */
struct error *row_sizes_factors(struct test_rows *r);

#endif
