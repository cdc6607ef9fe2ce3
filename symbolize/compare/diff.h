/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pysym diff`: from the runs of both sides to a report. diff_create() reads the rules, so that what is wrong with them is
 * said before traces are read; then a pass adds up the traces into diff->runs.set; diff_judge() compares and judges.
 */
#ifndef SYMBOLIZE_COMPARE_DIFF_H
#define SYMBOLIZE_COMPARE_DIFF_H

#include <stdio.h>

#include "formats/base/err.h"
#include "formats/compare/comparison.h"
#include "formats/compare/gate.h"
#include "formats/compare/report.h"
#include "symbolize/compare/gather.h"
#include "symbolize/compare/request.h"
#include "symbolize/compare/source_maps.h"

struct diff {
    const struct compare_request *request; /* borrowed */
    struct gathered_runs runs;
    struct gate *gate;
    struct source_maps *maps;              /* NULL: no sources were named */
    struct comparison comparison;          /* of diff_judge(), as the following */
    const struct gate_result *results;
    size_t result_count;
};

/* `request` and `limits` are borrowed. */
struct error *diff_create(const struct compare_request *request, struct limits *limits, struct diff **out);
void diff_destroy(struct diff *d); /* accepts NULL */
/* `paths` are those of the traces; `event`: see struct compare_options. */
struct error *diff_judge(struct diff *d, const char *const *paths, size_t path_count, const char *event);
/* Writes the report that the request asks for: `report` says how, and gets what is judged. */
struct error *diff_write(struct diff *d, struct report *report, FILE *out);
/*
 * The same for the page: judges in end() of the emitter, when the tally, which has to end before it, has counted all samples.
 * All is borrowed; arguments are those of diff_judge() and diff_write().
 */
struct diff_page {
    struct emit_comparison emit;
    struct diff *diff;
    struct report *report;
    const char *const *paths;
    size_t path_count;
    const char *event;
};
void diff_page_init(struct diff_page *p, struct diff *d, struct report *report, const char *const *paths, size_t path_count, const char *event);
/* The worst answer of a rule; GATE_KEPT if there are none, or if those that are undecided need not be. */
enum gate_answer diff_verdict(const struct diff *d);

#endif
