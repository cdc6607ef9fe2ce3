/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which rows there are (row.h). A row needs least_samples on average over all runs, and of what is not the part as many; the
 * whole of a part needs least_parent_samples, and some on each side.
 */
#ifndef FORMATS_COMPARE_ROWS_H
#define FORMATS_COMPARE_ROWS_H

#include "formats/compare/row.h"

/* Makes the rows, without the total. The caller deinits `r`, also after an error; all arguments must outlive it. */
struct error *rows_init(struct test_rows *r, const struct sides *s, const struct match *match, const struct compare_options *options,
                        bool by_work);
void rows_deinit(struct test_rows *r);

#endif
