/* SPDX-License-Identifier: Apache-2.0 */
/* The order of rows where their figures are equal: by names, so that it does not depend on how things are numbered. */
#ifndef FORMATS_COMPARE_ROW_ORDER_H
#define FORMATS_COMPARE_ROW_ORDER_H

#include "formats/compare/comparison.h"

/* As qsort() wants it: by kind, file, name, line, and then by callers. 0: the same row. */
int row_name_order(const struct run_set *set, const struct compare_row *a, const struct compare_row *b);
/* The surest first: by q, by p, by how much time it is; then as above. */
int row_surest_order(const struct run_set *set, const struct compare_row *a, const struct compare_row *b);

#endif
