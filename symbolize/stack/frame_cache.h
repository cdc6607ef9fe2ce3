/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps which frame of the model a place in Python code became. Each epoch of a trace defines the code objects again that are
 * still sampled, under other ids; names and lines follow from their contents, whatever the epoch, and are decoded once.
 *
 * Code is known by all its contents, which are compared byte by byte. So much is kept and no more: when it is full it
 * begins anew.
 */
#ifndef SYMBOLIZE_STACK_FRAME_CACHE_H
#define SYMBOLIZE_STACK_FRAME_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "symbolize/trace/epoch.h"

#define FRAME_CACHE_NONE UINT32_MAX

/* {0} is empty. */
struct frame_cache {
    struct intern codes, places;
    VEC(uint32_t) frames;     /* by place: of the model; FRAME_CACHE_NONE: not set yet */
    VEC(uint32_t) epoch_codes; /* by id of the epoch: in `codes`; FRAME_CACHE_NONE until it is looked up */
    struct buf scratch;
};

void frame_cache_deinit(struct frame_cache *c);
/* Call when the epoch ends: forgets its ids. */
void frame_cache_end_epoch(struct frame_cache *c);
/*
 * The frame of an offset in a code object of the epoch, in the interpreter of that path (a text of the model), to be read, or
 * to be set where it is FRAME_CACHE_NONE. Valid until the next call. NULL: out of memory.
 */
uint32_t *frame_cache_find(struct frame_cache *c, const struct epoch *e, uint32_t code, int64_t at, uint32_t interpreter);

#endif
