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
    uint32_t stack_bytes; /* --stack-size; 0: not given */
    bool wall;
    uint64_t period;      /* -c; 0: not given */
};

extern const struct option_row record_option_rows[];

/*
 * Reads argv into `o`; options not given get their defaults. Strings are borrowed from argv. Call deinit after errors,
 * too.
 */
struct error *record_options_read(struct record_options *o, int argc, char **argv);
void record_options_deinit(struct record_options *o);

#endif
