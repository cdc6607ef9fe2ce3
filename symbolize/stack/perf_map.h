/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code that a program made at run time, from the table that it wrote for perf (PERF_MAP of the trace). An
 * address may have belonged to several functions in turn; the last line that covers it counts.
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
/* The table of one process. {0} is empty. */
struct perf_map {
    struct arena names;
    VEC(struct perf_map_line) lines; /* in the order of the text */
    VEC(struct perf_map_line) pieces; /* sorted, not overlapping, used for lookups; `start` is that of the line */
    VEC(uint64_t) piece_starts;
    uint64_t read_len, read_hash; /* of the last text: if the next one begins with it, only the rest is read */
    uint64_t bad_count;           /* lines that are malformed, or too many */
    bool unfinished;
};

/* Adds the text of a table. False: out of memory. */
bool perf_map_add(struct perf_map *m, const uint8_t *text, uint64_t len_bytes);
/* The line that covers an address, or NULL (also when memory ran out). */
const struct perf_map_line *perf_map_find(struct perf_map *m, uint64_t address);
void perf_map_deinit(struct perf_map *m);

#endif
