/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The innermost part of the thread's stack, read once per sample: native frames, the records of CPython's eval loop and its
 * shim frames lie in it, and each would cost a read of its own.
 */
#ifndef BPF_LIVE_STACK_H
#define BPF_LIVE_STACK_H

#include "bpf/walk.h"

#define LIVE_STACK_MASK 16383 /* of live_stack.bytes */

struct live_stack {
    PY_U64 start, len_bytes; /* what was read, in the process; len_bytes 0: nothing was */
    PY_U64 depth_bytes;      /* how deep the last sample's stack went, which the next one reads at once */
    PY_U8 bytes[LIVE_STACK_MASK + 1 + 8];
};

/* Whether `len` bytes from `address` on were read. */
WALK_INLINE int live_stack_has(const struct live_stack *k, PY_U64 address, PY_U64 len)
{
    return k->len_bytes >= len && address - k->start <= k->len_bytes - len;
}

/* The word at `address`, if it was read. 0: it was. */
WALK_INLINE int live_stack_u64(const struct live_stack *k, PY_U64 address, PY_U64 *out)
{
    if (!live_stack_has(k, address, sizeof *out))
        return 1;
    *out = WALK_U64(k->bytes, address - k->start, LIVE_STACK_MASK);
    return 0;
}

#endif
