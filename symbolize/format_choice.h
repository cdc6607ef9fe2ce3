/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses what pysym writes: the format that was named, else that of the output's name, else the first page. A name that is
 * no format is answered with what was probably meant.
 */
#ifndef SYMBOLIZE_FORMAT_CHOICE_H
#define SYMBOLIZE_FORMAT_CHOICE_H

#include <stdio.h>

#include "formats/base/err.h"
#include "formats/emit/emit.h"

enum output_kind {
    OUTPUT_EMITTER,
    OUTPUT_PAGE, /* the first page: the verdict, and the tables of an emitter */
    OUTPUT_SUMMARY,
    OUTPUT_DUMP,
    OUTPUT_UNWIND_CHECK,
    OUTPUT_LIVE,     /* a view on a terminal */
    OUTPUT_DIFF,     /* of two sets of runs: a report, or the page of an emitter */
    OUTPUT_BASELINE,
};

struct format_choice {
    enum output_kind kind;
    const struct emitter *emitter; /* of OUTPUT_EMITTER and OUTPUT_PAGE; OUTPUT_DIFF: of the page, else NULL */
};

/* `format` and `output` are the arguments of -f and -o, NULL where they were not given. ERROR_USAGE if nothing fits. */
struct error *format_choose(const char *format, const char *output, struct format_choice *out);
/* Prints all formats, a line each, as --help shows them. */
void format_print(FILE *out);

#endif
