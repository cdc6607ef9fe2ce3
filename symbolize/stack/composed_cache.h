/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps what was composed of lists of frames. Each epoch of a trace defines the stacks again that are still sampled, under
 * other ids; what is shown of them follows from the frames, whatever the epoch, and is composed once.
 *
 * A key is all that the composition depends on, in full, and keys are compared byte by byte. So much is kept and no more:
 * when it is full it begins anew.
 */
#ifndef SYMBOLIZE_STACK_COMPOSED_CACHE_H
#define SYMBOLIZE_STACK_COMPOSED_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"

struct composed {
    uint32_t stack;                            /* of the model */
    uint32_t python_end, native_end, join_end; /* as in struct merge_input and struct merge_output */
    uint32_t no_frame;                         /* as in struct merge_output */
    uint32_t modules_first, modules_count;     /* in composer.touched: those with a frame that is shown or was hidden */
    uint32_t native_count, native_unnamed;     /* native frames that are shown; of them those without a name */
    uint32_t python_count, python_unnamed;     /* the same of Python frames */
    uint32_t outermost;                        /* of the native frames, an expansion; MODEL_NONE: there is none */
    bool in_interpreter;                       /* as in struct merge_output */
    bool snapshot;                             /* the native stack was unwound from one */
};

/* {0} is empty. */
struct composed_cache {
    struct intern keys;
    VEC(struct composed) composed; /* by key; modules_first is in `modules` */
    VEC(uint32_t) modules;         /* of all, as in composer.touched */
};

void composed_cache_deinit(struct composed_cache *c);
/* NULL: not kept. `modules_first` counts in c->modules. Valid until something is put. */
const struct composed *composed_cache_find(const struct composed_cache *c, const struct buf *key);
/* Keeps `composed`, whose modules are those from `modules` on; without memory for it, nothing. The key is new. */
void composed_cache_put(struct composed_cache *c, const struct buf *key, const struct composed *composed, const uint32_t *modules);

#endif
