/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --strict: how complete a recording must be. A threshold is KEY:PERCENT. For stacks and names PERCENT is the least
 * share that must be whole, for losses the largest share that may be lost; either way the number of samples that may be
 * missing is rounded up to a whole one. The keys are the classes of losses.def, and names.
 */
#ifndef SYMBOLIZE_SUMMARY_STRICT_H
#define SYMBOLIZE_SUMMARY_STRICT_H

#include <stdbool.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/summary/summary.h"

#define STRICT_DEFAULT "python:99.9,lost:1%,names:off"

enum strict_key {
    STRICT_PYTHON,
    STRICT_NATIVE,
    STRICT_KERNEL,
    STRICT_JOIN,
    STRICT_NAMES,
    STRICT_LOST,
    STRICT_NO_PYTHON,
    STRICT_PART,
    STRICT_KEYS,
};

struct strict {
    bool is_on; /* --strict was given */
    bool checked[STRICT_KEYS];
    double percent[STRICT_KEYS]; /* of those that are checked */
};

/*
 * Parses the argument of --strict: thresholds with commas between them. They change those of STRICT_DEFAULT, which an
 * empty list or NULL leaves as they are; "all" stands for "nothing may be missing at all". ERROR_USAGE says what is
 * wrong.
 */
struct error *strict_parse(const char *text, struct strict *out);
/*
 * True if the recording meets all thresholds. Otherwise writes a line for each that it fails to `out`, for standard
 * error: the share, the threshold, and what is missing. A damaged file always fails. `r`: NULL if nothing was resolved.
 */
bool strict_check(const struct strict *strict, const struct summary *s, const struct resolver *r, FILE *out);

#endif
