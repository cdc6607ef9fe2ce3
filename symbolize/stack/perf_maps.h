/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of symbols (perf_map.h) of all processes of a trace.
 *
 * A table comes after the samples that need it: at the end of the recording, or of the process. So if a trace has
 * frames in such code, it is read once more, only for its tables. A pipe cannot be read again; for a pipe only the
 * tables that were read before the sample are used.
 */
#ifndef SYMBOLIZE_STACK_PERF_MAPS_H
#define SYMBOLIZE_STACK_PERF_MAPS_H

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "symbolize/stack/perf_map.h"
#include "symbolize/trace/epoch.h"

/* Tables by the identity of the process (build_id of MODULE). {0} is empty. */
struct perf_maps {
    struct intern ids; /* identity -> index in `maps` */
    VEC(struct perf_map) maps;
    struct limits *limits; /* borrowed; NULL: none */
};
void perf_maps_deinit(struct perf_maps *all);
/* The table of that identity, created if needed. NULL: out of memory. */
struct perf_map *perf_maps_get(struct perf_maps *all, const uint8_t *id, uint32_t id_len);
/* Adds a table of a trace. Its module must have been loaded into the epoch. */
struct error *perf_maps_record(struct perf_maps *all, const struct epoch *e, const struct trace_perf_map *rec);
/* Adds all tables of a trace. Does nothing if the trace cannot be read twice (a pipe). */
struct error *perf_maps_read(struct perf_maps *all, const char *path);

#endif
