/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words in which unwind tables lie, as pycap writes them: chunks of a map of maps (bpf/sampler_state.h), which are made when
 * they are needed. Addresses for all that there may be are reserved at once; a chunk is mapped when it is first used, since that
 * makes all of its pages resident.
 */
#ifndef CAPTURE_SAMPLER_TABLE_CHUNKS_H
#define CAPTURE_SAMPLER_TABLE_CHUNKS_H

#include <stdint.h>

#include "capture/sampler/table_maker.h"
#include "formats/base/err.h"

/* {0} has none. */
struct table_chunks {
    uint64_t *words;
    uint32_t count, max; /* chunks */
    int *fds;            /* of those that are not mapped yet; else -1 */
    int map;             /* the map of chunks; borrowed, as the next */
    struct table_maker *maker;
};

/* Reserves addresses, and makes the first chunks. */
struct error *table_chunks_init(struct table_chunks *c, int map, struct table_maker *maker);
void table_chunks_deinit(struct table_chunks *c);
/* Both as struct table_words (capture/binary/table_space.h) has them. `ctx` is struct table_chunks. */
struct error *table_chunks_grow(void *ctx, uint32_t more, uint32_t *count);
struct error *table_chunks_map(void *ctx, uint32_t start, uint32_t count);

#endif
