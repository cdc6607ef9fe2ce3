/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `pycap dump`: some of the options of `pycap record`, and a few of its own. */
#ifndef CAPTURE_SESSION_DUMP_OPTIONS_H
#define CAPTURE_SESSION_DUMP_OPTIONS_H

#include "capture/session/record_options.h"

struct dump_options {
    struct record_options record; /* first member, so that a row's offset is valid for either struct */
    bool json, python_only;
    const char *merge;      /* of pysym; NULL: its default */
    const char *shown[16];  /* what pysym is to be started with, once the options were read; NULL at the end */
};

/* As record_options_read(). Without -o, o->record.session.output is NULL. */
struct error *dump_options_read(struct dump_options *o, int argc, char **argv);
void dump_options_deinit(struct dump_options *o);
/* Prints the options as --help shows them. */
void dump_options_print(FILE *out);

#endif
