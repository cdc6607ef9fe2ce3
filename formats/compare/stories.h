/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One change, one finding. A function that got slower is seen in its nodes, in its own row, in its file's and in those of its
 * callers. The finding is the row at the cause: the node if it is one, else the function (its own time before its total); the
 * others say by `because` that they are told there. A function whose time moved more than its share of its callers' did owes
 * it to these.
 */
#ifndef FORMATS_COMPARE_STORIES_H
#define FORMATS_COMPARE_STORIES_H

#include "formats/compare/row.h"

/* Answers functions, lines and files whose p is `p_most` at most, after the nodes (peel.h). */
struct error *stories_tell(struct test_rows *r, double p_most);

#endif
