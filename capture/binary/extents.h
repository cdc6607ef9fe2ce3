/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates extents (first fit) in an array that the sampler reads. A sample that is being
 * taken on another CPU may still read an extent that was given back. So the extent waits,
 * and becomes free when the caller says that enough time has passed.
 */
#ifndef CAPTURE_BINARY_EXTENTS_H
#define CAPTURE_BINARY_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/vec.h"

struct space_extent {
    uint32_t start, count;
    uint64_t time_ns; /* when it was given back */
};

struct extents {
    VEC(struct space_extent) free;    /* sorted by start; no two are adjacent */
    VEC(struct space_extent) waiting; /* given back but not free yet, sorted by time */
    uint32_t total, used;
};

/* All `total` elements are free at first. False: out of memory. */
bool extents_init(struct extents *e, uint32_t total);
void extents_deinit(struct extents *e);
/*
 * Takes `count` elements and stores the first in `*start`. False: no gap is large enough. A `count` of 0 always
 * succeeds.
 */
bool extents_take(struct extents *e, uint32_t count, uint32_t *start);
/*
 * Gives back elements that a sample may still be reading. They become free in extents_free_after_grace(). Calls need
 * not be in order of time. False: out of memory; the space is lost then.
 */
bool extents_give(struct extents *e, uint32_t start, uint32_t count, uint64_t time_ns);
/* Gives back elements that the sampler was never told about: they are free immediately. */
void extents_return(struct extents *e, uint32_t start, uint32_t count);
/* There are `count` more elements behind the last, all free. False: out of memory; there are no more then. */
bool extents_grow(struct extents *e, uint32_t count);
/* How many free elements there are at the end. */
uint32_t extents_end_gap(const struct extents *e);
/* Frees the elements that were given back before `time_ns`. False: out of memory. */
bool extents_free_after_grace(struct extents *e, uint64_t time_ns);

#endif
