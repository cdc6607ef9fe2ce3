/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks in a list, the newest first; a piece is cut from the newest, or begins another. */
#include "formats/base/arena.h"

#include <stdlib.h>
#include <string.h>

/* Chunks double from a small size: a host may have thousands of processes with an arena or three each. */
enum { CHUNK_MIN_BYTES = 1024 - 32, CHUNK_MAX_BYTES = 64 * 1024, ALIGN_BYTES = 16 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t cap_bytes;
    _Alignas(ALIGN_BYTES) uint8_t data[];
};

void *arena_alloc(struct arena *a, size_t len_bytes)
{
    if (len_bytes > SIZE_MAX / 2)
        return NULL;
    len_bytes = (len_bytes + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
    if (!a->chunks || len_bytes > a->chunks->cap_bytes - a->used_bytes) {
        size_t cap = a->total_bytes < CHUNK_MIN_BYTES ? CHUNK_MIN_BYTES
                     : a->total_bytes < CHUNK_MAX_BYTES ? a->total_bytes : CHUNK_MAX_BYTES;
        if (cap < len_bytes)
            cap = len_bytes;
        if (!limits_take(a->limits, cap))
            return NULL;
        struct arena_chunk *chunk = malloc(sizeof *chunk + cap);
        if (!chunk) {
            limits_give(a->limits, cap);
            return NULL;
        }
        chunk->cap_bytes = cap;
        chunk->next = a->chunks;
        a->chunks = chunk;
        a->used_bytes = 0;
        a->total_bytes += cap;
    }
    void *p = a->chunks->data + a->used_bytes;
    a->used_bytes += len_bytes;
    return p;
}

void *arena_calloc(struct arena *a, size_t count, size_t size_bytes)
{
    size_t len;

    if (__builtin_mul_overflow(count, size_bytes, &len))
        return NULL;
    void *p = arena_alloc(a, len);
    if (p)
        memset(p, 0, len);
    return p;
}

void *arena_dup(struct arena *a, const void *data, size_t len_bytes)
{
    void *p = arena_alloc(a, len_bytes);

    if (p && len_bytes)
        memcpy(p, data, len_bytes);
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t len_bytes)
{
    char *p = arena_alloc(a, len_bytes + 1);

    if (p) {
        if (len_bytes)
            memcpy(p, s, len_bytes);
        p[len_bytes] = 0;
    }
    return p;
}

void arena_deinit(struct arena *a)
{
    while (a->chunks) {
        struct arena_chunk *next = a->chunks->next;
        free(a->chunks);
        a->chunks = next;
    }
    limits_give(a->limits, a->total_bytes);
    *a = (struct arena){.limits = a->limits};
}
