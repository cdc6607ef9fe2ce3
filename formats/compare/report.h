/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a comparison and the judgement of rules for people and programs. What is known comes with its interval; there is
 * never a bare percentage.
 */
#ifndef FORMATS_COMPARE_REPORT_H
#define FORMATS_COMPARE_REPORT_H

#include <stdio.h>

#include "formats/base/err.h"
#include "formats/compare/comparison.h"
#include "formats/compare/gate.h"
#include "formats/emit/emit.h"

struct report {
    const struct comparison *comparison;
    const struct gate_result *results; /* of rules, in the order given */
    size_t result_count;
    bool undecided_fails;         /* the budget says so */
    const char *exporter;         /* "pysym " and its version */
    struct emit_terminal terminal;
    uint32_t top_count;           /* rows of each list; 0: all */
    bool full_paths;
};

struct report_format {
    const char *name;        /* of --format */
    const char *description; /* one line for --help */
    const char *extension;   /* ".md"; NULL: none */
    enum job_text_syntax syntax;
    struct error *(*write)(const struct report *report, FILE *out); /* the caller checks and closes `out` */
};

extern const struct report_format *const report_formats[]; /* ends with NULL; the first is the default */
const struct report_format *report_format_find(const char *name); /* NULL: there is no such */

#endif
