/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the innermost part of the thread's stack for a sample, before the stacks are walked. */
#ifndef BPF_SAMPLER_STACK_H
#define BPF_SAMPLER_STACK_H

#include "bpf/sampler_state.h"

#define LIVE_STACK_LEAST 1024 /* bytes; a stack that was not unwound yet may be deeper */
#define LIVE_STACK_MORE 256   /* further than the last sample's stack went: the next one may be a little deeper */

/* Reads as much of the stack as the last sample on this CPU needed. What cannot be read is left to who needs it. */
__attribute__((noinline)) int live_stack_fill(void)
{
    struct scratch *s = scratch_get();

    if (!s)
        return 0;
    struct live_stack *k = &s->live;
    __u64 start = s->sample.registers[ARCH_SP], len = k->depth_bytes + LIVE_STACK_MORE, most = s->sample.stack_size;
    if (len < LIVE_STACK_LEAST)
        len = LIVE_STACK_LEAST;
    if (most && len > most)
        len = most;
    NATIVE_LIMIT(len, LIVE_STACK_MASK + 1);
    if (WALK_READ(0, k->bytes, len, start)) {
        /* The stack may end with the page, or the program has not touched the next one. */
        len = ARCH_PAGE_BYTES - (start & (ARCH_PAGE_BYTES - 1));
        if (WALK_READ(0, k->bytes, len, start))
            return 0;
    }
    k->start = start;
    k->len_bytes = len;
    return 0;
}

/* Notes how deep the stack went that was unwound from s->sample's registers: the next one is read so far at once. */
static __always_inline void live_stack_note(struct scratch *s)
{
    __u64 depth = s->native.registers[ARCH_SP] - s->sample.registers[ARCH_SP];

    s->live.depth_bytes = depth > LIVE_STACK_MASK ? LIVE_STACK_MASK : depth;
}

#endif
