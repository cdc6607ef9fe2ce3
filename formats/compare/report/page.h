/* SPDX-License-Identifier: Apache-2.0 */
/* What the page of the format html has to know of a comparison beside its report as JSON. */
#ifndef FORMATS_COMPARE_REPORT_PAGE_H
#define FORMATS_COMPARE_REPORT_PAGE_H

#include "formats/compare/report.h"

/*
 * Writes two members of an object of JSON, with a comma between them: "comparison", the report as JSON; and "compared", how
 * the samples of the captures are put together:
 *
 *     captures   for each of the first `capture_count` runs of the set: ["new" or "old", factor]; null: it is left out
 *     functions  {name, file, line, unqualified}: see struct run_function
 *     nodes      the call paths that rows or sums have: of each the number of its parent, and its function; parents come
 *                first, and the first node is the root, whose function is -1
 *     rows       of each row of the comparison the number of its node; -1: it has none
 *     sums       of the other runs, of which there are no samples: of each node that has own time its number, the sum of
 *                that over the new runs, each divided by its factor, how many samples that is, and the same of the old ones
 */
struct error *report_page(const struct report *r, size_t capture_count, FILE *out);

#endif
