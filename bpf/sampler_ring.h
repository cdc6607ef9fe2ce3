/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rings by which messages reach user space.
 *
 * To reserve room in a ring takes a lock, for which all CPUs that send compete; in an NMI kernels up to 6.14 only try to get
 * it, and the message is lost where that fails. So a few CPUs side by side share a ring. Where they are all that there are,
 * it is `ring`, which is named in the program and costs no look-up; else they are in `rings`.
 */
#ifndef BPF_SAMPLER_RING_H
#define BPF_SAMPLER_RING_H

#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

const volatile __u32 ring_count = 1; /* user space sets it */
const volatile __u32 ring_shift = 0; /* CPU n sends to ring n >> ring_shift; to the last one if it came online later */
const volatile __u32 sample_wake_bytes = 1 << 20; /* wake user space when a ring holds more */

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 8 << 20); /* user space sets it */
} ring SEC(".maps");

/* With one ring this map is not made. User space puts the rings in; the first is `ring`. */
struct ring_map {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1); /* user space sets it */
    __type(key, __u32);
    __array(values, struct ring_map);
} rings SEC(".maps");

/* The current CPU's ring, where there are several. */
static __always_inline void *ring_of_cpu(void)
{
    __u32 number = bpf_get_smp_processor_id() >> ring_shift;

    if (number >= ring_count)
        number = ring_count - 1;
    return bpf_map_lookup_elem(&rings, &number);
}

/* How much of the CPU's ring is not drained yet. */
static __always_inline __u64 ring_held_bytes(void)
{
    if (ring_count == 1)
        return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
    void *of_cpu = ring_of_cpu();
    return of_cpu ? bpf_ringbuf_query(of_cpu, BPF_RB_AVAIL_DATA) : 0;
}

static __always_inline __u64 ring_wake(__u64 held_bytes)
{
    return held_bytes > sample_wake_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

/*
 * Sends a message to user space. 0: done; else the CPU's ring has no room. It wakes nobody, unless the ring would be full
 * before user space drains it next.
 */
static __always_inline long ring_send(void *message, __u64 len_bytes)
{
    if (ring_count == 1)
        return bpf_ringbuf_output(&ring, message, len_bytes, ring_wake(bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA)));
    void *of_cpu = ring_of_cpu();
    if (!of_cpu)
        return -1;
    return bpf_ringbuf_output(of_cpu, message, len_bytes, ring_wake(bpf_ringbuf_query(of_cpu, BPF_RB_AVAIL_DATA)));
}

/* Between two calls of user space; after one it listens to the side-band for longer than this. */
#define RING_CALL_NS 100000000ull
volatile __u64 ring_called_ns = 0;

/*
 * Wakes user space, without a message: a process that is followed has changed, and the side-band, which says how, may not be
 * listened to. Who calls has this CPU's scratch.
 */
static __noinline void ring_call(__u64 now_ns)
{
    __u64 called_ns = ring_called_ns;

    if (now_ns - called_ns < RING_CALL_NS)
        return;
    ring_called_ns = now_ns;
    void *nothing = bpf_ringbuf_reserve(&ring, 8, 0);
    if (nothing)
        bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
}

#endif
