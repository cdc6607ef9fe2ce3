/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which unwind tables are taken out to make room for another: none that is in use, unless its process has most of them, and more
 * than the one that asks will have then; and none at all if that does not make room.
 */
#ifndef CAPTURE_BINARY_TABLE_VICTIMS_H
#define CAPTURE_BINARY_TABLE_VICTIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/binary/extents.h"

/* A table that could be taken out. */
struct table_place {
    uint32_t number, start, count; /* by which the caller knows it; words */
    uint32_t used_s, cold_s;       /* when it was used last, and how long after that it is in use */
    pid_t pid;                     /* the process that wanted it */
    bool leaves;                   /* the answer */
};

/* The table that room is wanted for. */
struct table_wish {
    uint64_t count;
    uint32_t max; /* words that there may be */
    uint32_t now_s;
    pid_t pid;
};

/* Sorts the places, and sets `leaves`. True: there is room when these have left, which may be none of them. */
bool table_victims_choose(struct table_place *places, size_t count, const struct extents *extents, const struct table_wish *wish);

#endif
