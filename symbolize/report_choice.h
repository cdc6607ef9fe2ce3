/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the report of `pysym diff`: the one that was named, else that of the output's name, else text. */
#ifndef SYMBOLIZE_REPORT_CHOICE_H
#define SYMBOLIZE_REPORT_CHOICE_H

#include <stdio.h>

#include "formats/base/err.h"
#include "formats/compare/report.h"
#include "symbolize/format_choice.h"

/*
 * `format` and `output` are the arguments of -f and -o, NULL where they were not given. *report is NULL for the page, which
 * an emitter writes: choice->emitter. ERROR_USAGE if nothing fits.
 */
struct error *report_choose(const char *format, const char *output, struct format_choice *choice, const struct report_format **report);
/* Prints all reports, a line each, as --help shows them. */
void report_choice_print(FILE *out);

#endif
