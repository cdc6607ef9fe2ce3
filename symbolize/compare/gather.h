/* SPDX-License-Identifier: Apache-2.0 */
/* The runs that `pysym diff` compares or `pysym baseline` keeps: of traces, which a pass has added up, and of baselines. */
#ifndef SYMBOLIZE_COMPARE_GATHER_H
#define SYMBOLIZE_COMPARE_GATHER_H

#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "formats/compare/run_set.h"
#include "symbolize/compare/request.h"

struct gathered_runs {
    struct run_set set; /* the runs of traces first, in the order of the command line */
    VEC(uint32_t) old_runs, new_runs;
};

/* Deinit it also after an error. */
struct error *gathered_init(struct gathered_runs *g, struct limits *limits);
void gathered_deinit(struct gathered_runs *g);
/*
 * Completes it when the set has the runs of the traces `paths`: reads the baselines, and what --work and --work-note say.
 * ERROR_USAGE if a recording is there twice, be it in a baseline or in a copy of its file.
 */
struct error *gathered_complete(struct gathered_runs *g, const struct compare_request *request, const char *const *paths, size_t path_count);

#endif
