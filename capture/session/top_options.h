/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `pycap top`: those options of `pycap record` that concern no file, and a few of the view. */
#ifndef CAPTURE_SESSION_TOP_OPTIONS_H
#define CAPTURE_SESSION_TOP_OPTIONS_H

#include "capture/session/record_options.h"

struct top_options {
    struct record_options record; /* first member, so that a row's offset is valid for either struct */
    const char *sort, *by;        /* of pysym; NULL: its default */
    bool python_only;
    const char *shown[16];        /* what pysym is to be started with, once the options were read; NULL at the end */
};

/* As record_options_read(). */
struct error *top_options_read(struct top_options *o, int argc, char **argv);
void top_options_deinit(struct top_options *o);
/* Prints the options as --help shows them. */
void top_options_print(FILE *out);

#endif
