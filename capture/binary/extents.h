/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Space in an array that the sampler reads: extents are taken (first fit) and given
 * back. What is given back may still be in use by a sample that is being taken on
 * another CPU: it becomes free when the caller says that enough time has passed.
 */
#ifndef CAPTURE_BINARY_EXTENTS_H
#define CAPTURE_BINARY_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/vec.h"

struct space_extent {
    uint32_t start, count;
    uint64_t time_ns; /* of giving back */
};

struct extents {
    VEC(struct space_extent) free;    /* by start, not touching */
    VEC(struct space_extent) waiting; /* in order of time */
    uint32_t total, used;
};

/* All `total` elements are free. False: out of memory. */
bool extents_init(struct extents *e, uint32_t total);
void extents_deinit(struct extents *e);
/* The first gap that is large enough, in *start; false when there is none. A `count` of 0 always succeeds. */
bool extents_take(struct extents *e, uint32_t count, uint32_t *start);
/*
 * Gives back what a sample may still be reading: it is free after extents_free_after_grace(). Calls need not come in
 * order of time. False: out of memory; the space is then lost.
 */
bool extents_give(struct extents *e, uint32_t start, uint32_t count, uint64_t time_ns);
/* Gives back what was taken and never shown to anybody: it is free at once. */
void extents_return(struct extents *e, uint32_t start, uint32_t count);
/* Frees what was given back before `time_ns`. False: out of memory. */
bool extents_free_after_grace(struct extents *e, uint64_t time_ns);

#endif
