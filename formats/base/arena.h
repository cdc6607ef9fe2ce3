/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is freed all at once: many small pieces of one lifetime, such as
 * everything an epoch of a trace defines. Pieces are aligned to 16 bytes.
 */
#ifndef FORMATS_BASE_ARENA_H
#define FORMATS_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/limits.h"

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks;
    size_t used_bytes; /* of the newest chunk */
    size_t total_bytes;
    struct limits *limits; /* borrowed; NULL: none. Stays when the memory is freed */
};

/* These return memory that lives until arena_deinit(); NULL: out of memory. */
void *arena_alloc(struct arena *a, size_t len_bytes);
void *arena_calloc(struct arena *a, size_t count, size_t size_bytes);
void *arena_dup(struct arena *a, const void *data, size_t len_bytes);
/* A copy with a NUL behind it. */
char *arena_strndup(struct arena *a, const char *s, size_t len_bytes);
void arena_deinit(struct arena *a);

#endif
