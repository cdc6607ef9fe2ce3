/* SPDX-License-Identifier: GPL-2.0-only */
/* Which process may fill how much of the ring with its waits and its hits of tracepoints (bpf/ring_share.h). */
#ifndef BPF_SAMPLER_ROOM_H
#define BPF_SAMPLER_ROOM_H

#include "bpf/ring_share.h"
#include "bpf/sampler_state.h"

const volatile __u64 wait_ring_bytes = 2 << 20; /* user space sets it to the ring's size */

/* What the processes of an owner have sent in a second of the clock. */
struct owner_sent {
    __u32 second;
    __u32 bytes;
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, WIRE_OWNERS);
    __type(key, __u32);
    __type(value, struct owner_sent);
} owners_sent SEC(".maps");

static __always_inline struct owner_sent *owner_sent_of(const struct wire_process *process)
{
    __u32 number = process->owner;

    return bpf_map_lookup_elem(&owners_sent, &number);
}

/* Whether the ring has room for what is to be sent of the waits or hits of a process; after begin_second(). */
static __always_inline enum ring_room room_for(const struct wire_process *process)
{
    __u64 held_bytes = ring_held_bytes();
    const struct owner_sent *owner = ring_is_for_owners(wait_ring_bytes, held_bytes) ? owner_sent_of(process) : 0;

    return ring_room(wait_ring_bytes, held_bytes, process->wait_bytes,
                     owner && owner->second == process->wait_second ? owner->bytes : 0);
}

/* So much was sent of them. */
static __always_inline void room_taken(struct wire_process *process, __u64 bytes)
{
    struct owner_sent *owner = owner_sent_of(process);

    __sync_fetch_and_add(&process->wait_bytes, bytes);
    if (!owner)
        return;
    if (owner->second != process->wait_second) {
        owner->second = process->wait_second;
        owner->bytes = 0;
    }
    __sync_fetch_and_add(&owner->bytes, bytes);
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
        room_taken(process, sizeof *t);
    scratch_leave(s);
    return room;
}

#endif
