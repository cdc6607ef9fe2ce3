/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How much of the ring the waits of one process, and of one owner, may fill. Built for BPF, and for the host, where tests try it.
 *
 * A process may switch hundreds of thousands of times a second, and user space may come late, on a busy host by seconds. So
 * waits leave a part of the ring to samples of the clock; and once half of it is full, who has sent more than its share in
 * this second has to wait until it is drained. What it does not send is owed by its call sites: it is thinned further.
 * An owner (capture/host/owner.h) with many processes has many shares: of the last quarter all of them have one together.
 */
#ifndef BPF_RING_SHARE_H
#define BPF_RING_SHARE_H

#include "bpf/walk.h"

enum ring_room {
    RING_ROOM,
    RING_ROOM_OF_OTHERS, /* there is room, but not for this process */
    RING_ROOM_NONE,
};

/* Whether it matters what an owner has sent, in a ring that holds so much. */
WALK_INLINE int ring_is_for_owners(PY_U64 ring_bytes, PY_U64 held_bytes)
{
    return held_bytes >= ring_bytes - ring_bytes / 4;
}

/*
 * A ring of `ring_bytes` holds `held_bytes`; in this second the process has sent `sent_bytes` of waits, and all processes of
 * its owner `owner_bytes`, which may be 0 where ring_is_for_owners() says no.
 */
WALK_INLINE enum ring_room ring_room(PY_U64 ring_bytes, PY_U64 held_bytes, PY_U64 sent_bytes, PY_U64 owner_bytes)
{
    if (held_bytes < ring_bytes / 2)
        return RING_ROOM;
    if (sent_bytes >= ring_bytes / 64)
        return RING_ROOM_OF_OTHERS;
    if (ring_is_for_owners(ring_bytes, held_bytes) && owner_bytes >= ring_bytes / 16)
        return RING_ROOM_OF_OTHERS;
    return held_bytes < ring_bytes - ring_bytes / 8 ? RING_ROOM : RING_ROOM_NONE;
}

#endif
