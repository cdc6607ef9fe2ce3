/* SPDX-License-Identifier: Apache-2.0 */
/* What the writer and the reader of baseline files share; docs/baseline-format.md is the specification. */
#ifndef FORMATS_COMPARE_BASELINE_FORMAT_H
#define FORMATS_COMPARE_BASELINE_FORMAT_H

#include <stdint.h>

#define BASELINE_MAGIC "\x89PYB\r\n\x1a\n"

enum {
    BASELINE_VERSION = 1,      /* that this program writes, and the newest that it reads */
    BASELINE_LEAST_READER = 1, /* the oldest version whose readers understand what it writes */
    BASELINE_HEADER_BYTES = 20,
    BASELINE_SECTION_BYTES = 9, /* around the contents */
};

/* Sections stand in this order; there is one RUN for each run, and one of each other kind. */
enum baseline_section {
    BASELINE_END,
    BASELINE_TEXTS,
    BASELINE_FUNCTIONS,
    BASELINE_CODES,
    BASELINE_NODES,
    BASELINE_LINES,
    BASELINE_RUN,
};

enum { BASELINE_UNQUALIFIED = 1 << 0 };                          /* flags of a function */
/* Of an event. */
enum { BASELINE_IS_TIME = 1 << 0, BASELINE_IS_WAITING = 1 << 1, BASELINE_IS_COUNTED = 1 << 2, BASELINE_IS_TASK = 1 << 3 };

#define BASELINE_SUM_MAX (UINT64_C(1) << 63)

/* What a list of cells has beside numbers and totals. */
struct baseline_list {
    bool has_self, has_dispersion;
};

#endif
