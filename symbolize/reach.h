/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caches by id: a VEC whose entries are zero until something is known about that id.
 */
#ifndef SYMBOLIZE_REACH_H
#define SYMBOLIZE_REACH_H

#include <stddef.h>
#include <string.h>

#include "formats/base/vec.h"

static inline void reach_zero_(void *data, size_t *count, size_t size_bytes, size_t reach)
{
    if (*count >= reach)
        return;
    memset((char *)data + *count * size_bytes, 0, (reach - *count) * size_bytes);
    *count = reach;
}

/* Makes it hold `reach` entries at least; false when memory ran out. */
#define VEC_REACH(v, reach)                                                                                            \
    (VEC_RESERVE(v, reach) ? (reach_zero_((v)->data, &(v)->count, sizeof *(v)->data, reach), true) : false)

#endif
