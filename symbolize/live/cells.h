/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads spent at places: a cell for each pair. A cell has the weights of two intervals, the one that is shown and the
 * one that is being counted, and those since the start. There are at most so many cells; when they become many, those of
 * threads that did nothing lately are added to the thread LIVE_OTHERS, so sums over all threads stay exact.
 */
#ifndef SYMBOLIZE_LIVE_CELLS_H
#define SYMBOLIZE_LIVE_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/map.h"
#include "formats/base/vec.h"

enum { LIVE_CELLS_MAX = 65536, LIVE_MEASURES = 2 };

/* In the unit of the event. */
struct live_weight {
    uint64_t self, total;
    uint64_t python; /* of samples whose innermost Python frame it is */
};

struct live_cell {
    uint32_t thread, place;
    uint64_t serials[2];                        /* by parity of an interval's number: which one it is; 0: none */
    struct live_weight now[2][LIVE_MEASURES];   /* likewise */
    struct live_weight all[LIVE_MEASURES];      /* without the interval that is being counted */
};

struct live_cells {
    struct map index; /* thread << 32 | place -> its cell */
    VEC(struct live_cell) list;
    VEC(uint32_t) touched; /* in the interval that is being counted */
};

void live_cells_deinit(struct live_cells *c);
/*
 * The weights in the interval that is being counted, number `serial`, of a cell. Where there is no room for it they are those of
 * others, and *place becomes the place of these. NULL: out of memory.
 */
struct live_weight *live_cells_at(struct live_cells *c, uint32_t thread, uint32_t *place, uint64_t serial);
/* Ends an interval: adds it to the sums since the start. */
void live_cells_end_interval(struct live_cells *c, uint64_t serial);
/* Are they so many that room should be made? */
bool live_cells_are_many(const struct live_cells *c);
/*
 * Gives threads other numbers, `threads[number]`, and where `fold` is set adds the cells that have nothing of the interval
 * `serial` to the thread and the place LIVE_OTHERS, whose total has of them what they took themselves. Call between intervals. False: out of memory.
 */
bool live_cells_renumber(struct live_cells *c, const uint32_t *threads, bool fold, uint64_t serial);

/* The weights of interval `serial`, zero where the cell has none. */
static inline struct live_weight live_cell_now(const struct live_cell *cell, uint64_t serial, int measure)
{
    return cell->serials[serial & 1] == serial ? cell->now[serial & 1][measure] : (struct live_weight){0};
}

#endif
