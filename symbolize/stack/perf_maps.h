/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of symbols (perf_map.h) of all processes of a trace.
 *
 * A table comes after the samples that need it: at the end of the recording, or of the process. So where a trace has
 * frames in such code it is read through once more, for its tables alone. A pipe cannot be read again; of it only the
 * tables that have come so far are used.
 */
#ifndef SYMBOLIZE_STACK_PERF_MAPS_H
#define SYMBOLIZE_STACK_PERF_MAPS_H

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "symbolize/stack/perf_map.h"
#include "symbolize/trace/epoch.h"

/* By the identity of the process (build_id of MODULE). {0} is empty. */
struct perf_maps {
    struct intern ids; /* an id's table has its number */
    VEC(struct perf_map) maps;
};
void perf_maps_deinit(struct perf_maps *all);
/* The table of that identity; made if there is none. NULL: out of memory. */
struct perf_map *perf_maps_get(struct perf_maps *all, const uint8_t *id, uint32_t id_len);
/* A table of a trace, whose module the epoch has. */
struct error *perf_maps_record(struct perf_maps *all, const struct epoch *e, const struct trace_perf_map *rec);
/* All tables of a trace. One that cannot be read twice (a pipe) is left alone. */
struct error *perf_maps_read(struct perf_maps *all, const char *path);

#endif
