/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The locks of interpreters (GIL), and how many threads wait for each: counted at switches between threads
 * (bpf/sampler_gil.h), carried by the samples of the thread that holds the lock.
 */
#ifndef BPF_GIL_WAITERS_H
#define BPF_GIL_WAITERS_H

#include "bpf/sampler_state.h"

#include "bpf/gil_place.h"

const volatile __u32 wait_recorded = 0; /* switches between threads are followed */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1); /* user space sets it */
    __type(key, struct wire_gil_key);
    __type(value, struct wire_gil);
} gils SEC(".maps");

/* Of the current process; see gil_place(). */
static __always_inline __u64 gil_of(const struct wire_process *process, __u64 interpreter)
{
    return gil_place(0, process, interpreter);
}

/*
 * How many threads wait for the lock of an interpreter. A function of its own, so that its variables do not lie on the stack
 * while the walkers run.
 */
static __noinline __u32 gil_waiters(const struct wire_process *process, __u32 tgid, __u64 interpreter)
{
    struct wire_gil_key key = {.address = gil_of(process, interpreter), .tgid = tgid};
    struct wire_gil *gil = key.address ? bpf_map_lookup_elem(&gils, &key) : 0;

    return gil ? wire_gil_waiters(gil->waits) : 0;
}

#endif
