/* SPDX-License-Identifier: GPL-2.0-only */
/* Which process may fill how much of the ring with its waits and its hits of tracepoints (bpf/ring_share.h). */
#ifndef BPF_SAMPLER_ROOM_H
#define BPF_SAMPLER_ROOM_H

#include "bpf/ring_share.h"
#include "bpf/sampler_state.h"

const volatile __u64 wait_ring_bytes = 2 << 20; /* user space sets it to the ring's size */

/* Whether the ring has room for what is to be sent of the waits or hits of a process. */
static __always_inline enum ring_room room_for(const struct wire_process *process)
{
    return ring_room(wait_ring_bytes, ring_held_bytes(), process->wait_bytes);
}

/* The counts of a process are of one second of the clock, which may be any number. */
static __always_inline void begin_second(struct wire_process *process, __u32 second)
{
    if (process->wait_second == second)
        return;
    process->wait_second = second;
    process->wait_stacks = 0;
    process->wait_bytes = 0;
    process->hit_stacks = 0;
}

/* Sends the sums of a thread that has ended. A process whose threads come and go has no more than its share of the ring. */
static __noinline enum ring_room send_thread(struct wire_thread *t, __u64 now_ns)
{
    __u32 tgid = t->tgid;
    struct wire_process *process = bpf_map_lookup_elem(&processes, &tgid);
    enum ring_room room = RING_ROOM;

    if (process) {
        begin_second(process, now_ns >> 30);
        room = room_for(process);
    }
    struct scratch *s = room == RING_ROOM ? scratch_enter() : 0;
    if (!s)
        return room == RING_ROOM ? RING_ROOM_NONE : room;
    if (ring_send(t, sizeof *t))
        room = RING_ROOM_NONE;
    else if (process)
        __sync_fetch_and_add(&process->wait_bytes, sizeof *t);
    scratch_leave(s);
    return room;
}

#endif
