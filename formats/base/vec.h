/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A typed growing array: VEC(struct thing) things = {0}; VEC_PUSH(&things, t).
 * {0} is an empty array; VEC_DEINIT frees it. VEC_RESERVE and VEC_PUSH are false when memory
 * ran out; the array then stays as it was.
 */
#ifndef FORMATS_BASE_VEC_H
#define FORMATS_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/limits.h"

#define VEC(type)           \
    struct {                \
        type *data;         \
        size_t count, cap;  \
    }

static inline bool vec_grow_(void **data, size_t *cap, size_t need, size_t size_bytes)
{
    size_t cap_new = *cap ? *cap : 8;

    while (cap_new < need) {
        if (cap_new > SIZE_MAX / 2 / size_bytes)
            return false;
        cap_new *= 2;
    }
    void *p = realloc(*data, cap_new * size_bytes);
    if (!p)
        return false;
    *data = p;
    *cap = cap_new;
    return true;
}

/* Makes room for `need` items in all. */
#define VEC_RESERVE(v, need) \
    ((size_t)(need) <= (v)->cap || vec_grow_((void **)&(v)->data, &(v)->cap, (need), sizeof *(v)->data))
#define VEC_PUSH(v, item) (VEC_RESERVE(v, (v)->count + 1) ? ((v)->data[(v)->count++] = (item), true) : false)

static inline void vec_extend_zero_(void *data, size_t *count, size_t size_bytes, size_t count_new)
{
    if (*count >= count_new)
        return;
    memset((char *)data + *count * size_bytes, 0, (count_new - *count) * size_bytes);
    *count = count_new;
}
/* Grows the array to `count_new` items at least, new ones zeroed: for caches by id. False: out of memory. */
#define VEC_EXTEND_ZERO(v, count_new) \
    (VEC_RESERVE(v, count_new) ? (vec_extend_zero_((v)->data, &(v)->count, sizeof *(v)->data, count_new), true) : false)

/* The same for what counts in the limits (limits.h); NULL: there are none. `count_new` is evaluated more than once. */
#define VEC_EXTEND_COUNTED(limits, v, count_new)                                                               \
    (limits_take(limits, (count_new) > (v)->count ? ((count_new) - (v)->count) * sizeof *(v)->data : 0) &&     \
     VEC_EXTEND_ZERO(v, count_new))

static inline void vec_extend_none_(void *data, size_t *count, size_t size_bytes, size_t count_new)
{
    if (*count >= count_new)
        return;
    memset((char *)data + *count * size_bytes, 0xff, (count_new - *count) * size_bytes);
    *count = count_new;
}
/* The same, but the new items have all bits set: for items of 32-bit numbers, in which UINT32_MAX says none. */
#define VEC_EXTEND_NONE(v, count_new) \
    (VEC_RESERVE(v, count_new) ? (vec_extend_none_((v)->data, &(v)->count, sizeof *(v)->data, count_new), true) : false)

#define VEC_DEINIT(v) (free((v)->data), (v)->data = NULL, (v)->count = (v)->cap = 0)

#endif
