/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the narrowest of many nested and overlapping address ranges that contains an address. Of equally wide ranges
 * the one with the highest value wins.
 */
#ifndef SYMBOLIZE_BINARY_RANGES_H
#define SYMBOLIZE_BINARY_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/vec.h"

struct range {
    uint64_t low, high; /* high is exclusive */
    uint32_t value;
};
/* {0} is empty. Add all, finish once, then find. */
struct ranges {
    VEC(struct range) rows;
};

/* False when memory ran out. Empty ranges are left out. */
bool ranges_add(struct ranges *r, uint64_t low, uint64_t high, uint32_t value);
/* Turns the ranges into disjoint pieces, sorted. */
bool ranges_finish(struct ranges *r);
/* The piece that holds the address, or NULL. */
const struct range *ranges_find(const struct ranges *r, uint64_t address);
void ranges_deinit(struct ranges *r);

#endif
