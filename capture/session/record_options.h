/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of `pycap record`: one row for each option (formats/base/options.h). A row also says whether and how
 * the option is written into the trace.
 */
#ifndef CAPTURE_SESSION_RECORD_OPTIONS_H
#define CAPTURE_SESSION_RECORD_OPTIONS_H

#include "capture/process/filter.h"
#include "capture/session/session_options.h"
#include "formats/base/options.h"

struct record_options {
    struct session_options session; /* first member, so that a row's offset is valid for either struct */
    bool help, version;
    /* owned storage that `session` points to */
    struct option_numbers pids;
    struct filter filter;
    int *cpus;
    struct when_list when;
    uint32_t stack_bytes; /* --stack-size; 0: not given */
    bool wall;
    uint64_t period;      /* -c; 0: not given */
};

extern const struct option_row record_option_rows[];

/* Sets what holds where an option is not given. */
void record_options_default(struct record_options *o);

/*
 * Reads argv into `o`; options not given get their defaults. Strings are borrowed from argv. Call deinit after errors,
 * too.
 */
struct error *record_options_read(struct record_options *o, int argc, char **argv);
/*
 * The same with other rows, whose target is `o` or what it is the first member of; `command`: "pycap top", for messages. `o` is
 * set to what holds where an option is not given; what lies behind it stays.
 */
struct error *record_options_read_rows(struct record_options *o, const struct option_row *rows, const char *command, int argc,
                                       char **argv);
/* The row of that name, which there is. */
struct option_row record_option_row(const char *name);
void record_options_deinit(struct record_options *o);

#endif
