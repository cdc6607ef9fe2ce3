/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was mapped where in one process, at any time of an epoch.
 *
 * The trace has changes with their times; a change may come in the file before
 * samples that are older than it. The state of the address space is therefore kept
 * for one moment and moved to the moment asked for: forwards by applying the changes
 * in between, backwards by starting over. Samples come nearly in order of time, so
 * nearly all moves are forwards and most are no move at all.
 */
#ifndef SYMBOLIZE_TRACE_ADDRESS_SPACE_H
#define SYMBOLIZE_TRACE_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/limits.h"
#include "formats/base/vec.h"

/* [address, end) of a process. */
struct mapping {
    uint64_t address, end, file_offset;
    uint32_t module; /* the epoch's id, 0 for none */
    uint32_t protection;
};

struct mapping_change {
    uint64_t time_ns; /* 0: before the capture began */
    struct mapping mapping;
    bool unmapped;
};

/* {0} is an empty address space. */
struct address_space {
    VEC(struct mapping_change) changes;
    bool changes_unsorted;
    size_t applied;          /* changes that `now` contains */
    VEC(struct mapping) now; /* sorted by address, not overlapping */
    uint64_t version;        /* changes whenever `now` does */
    struct limits *limits;   /* of the work to move; borrowed; NULL: none */
};

void address_space_deinit(struct address_space *m);
/* False when memory ran out. A range that is empty or wraps around is ignored. */
bool address_space_add(struct address_space *m, const struct mapping_change *change);
/* Moves `now` to that time: applies all changes up to and including it. False when memory ran out, or the limit is met. */
bool address_space_move(struct address_space *m, uint64_t time_ns);
/* The mapping of `now` that contains the address, or NULL. */
const struct mapping *address_space_find(const struct address_space *m, uint64_t address);

#endif
