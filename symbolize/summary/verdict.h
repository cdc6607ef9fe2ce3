/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict on a recording, a line for each question that a reader has: what was asked for, how much of it was seen,
 * what was lost, whether stacks are whole and frames have names, and what to do about it.
 */
#ifndef SYMBOLIZE_SUMMARY_VERDICT_H
#define SYMBOLIZE_SUMMARY_VERDICT_H

#include <stdbool.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/summary/summary.h"

/* `brief`: the file and the quality alone, above the tables of the first page. */
struct error *verdict_print(struct summary *s, const struct resolver *r, bool brief, FILE *out);

#endif
