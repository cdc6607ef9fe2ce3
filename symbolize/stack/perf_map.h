/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that programs made at run time, from the tables that they wrote for perf (PERF_MAP of the trace).
 *
 * A table comes after the samples that need it: at the end of the recording, or of the process. So where a trace has
 * frames in such code it is read through once more, for its tables alone; a pipe cannot be, and gives the tables it has
 * given so far. One address may have been several functions in turn; the last line that names it counts.
 */
#ifndef SYMBOLIZE_STACK_PERF_MAP_H
#define SYMBOLIZE_STACK_PERF_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/arena.h"
#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"

struct perf_map_line {
    uint64_t start, end;
    const char *name;
};
/* Of one process. {0} is empty. */
struct perf_map {
    struct arena names;
    VEC(struct perf_map_line) lines; /* as they came */
    VEC(struct perf_map_line) pieces; /* sorted, not overlapping: what counts; `start` is that of the line */
    VEC(uint64_t) piece_starts;
    uint64_t read_len, read_hash; /* of the text read last: one that goes on from there is not read again */
    uint64_t bad_count;           /* lines that break the form, or are too many */
    bool unfinished;
};

/* Takes a table in. False: out of memory. */
bool perf_map_add(struct perf_map *m, const uint8_t *text, uint64_t len_bytes);
/* The line that names an address, or NULL (also when memory ran out). */
const struct perf_map_line *perf_map_find(struct perf_map *m, uint64_t address);
void perf_map_deinit(struct perf_map *m);

/* By the identity of the process (build_id of MODULE). {0} is empty. */
struct perf_maps {
    struct intern ids; /* an id's table has its number */
    VEC(struct perf_map) maps;
};
void perf_maps_deinit(struct perf_maps *all);
/* The table of that identity; made if there is none. NULL: out of memory. */
struct perf_map *perf_maps_get(struct perf_maps *all, const uint8_t *id, uint32_t id_len);
/* All tables of a trace. One that cannot be read twice (a pipe) is left alone. */
struct error *perf_maps_read(struct perf_maps *all, const char *path);

#endif
