/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that a program made at run time, from the table that it wrote for perf (PERF_MAP of the trace). One
 * address may have been several functions in turn; the last line that names it counts.
 */
#ifndef SYMBOLIZE_STACK_PERF_MAP_H
#define SYMBOLIZE_STACK_PERF_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/arena.h"
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

#endif
