/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line asks of `pysym diff` and `pysym baseline`. Texts are borrowed from it. */
#ifndef SYMBOLIZE_COMPARE_REQUEST_H
#define SYMBOLIZE_COMPARE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/options.h"
#include "formats/compare/report.h"

/* The most looks that share an error. */
#define LOOKS_MOST 1000

struct compare_request {
    /*
     * How many of the inputs are the old runs: they come first. compare_sort_inputs() takes the baselines from among the
     * inputs; --baseline adds to those of the old runs at once.
     */
    size_t old_count;
    bool divided; /* -- was given */
    struct option_texts old_baselines, new_baselines;
    struct option_texts rules; /* --fail-on */
    const char *budget;         /* files; NULL: not given */
    const char *work;
    const char *work_note;      /* the key of PYCAP_NOTE that counts work */
    uint32_t look, looks;       /* 0: not given */
    bool force;
    const char *old_source, *new_source; /* folders; NULL: not given */
    const struct report_format *report;  /* NULL: none, as of the page */
};

#endif
