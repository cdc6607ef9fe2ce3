/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the ring waits may fill: all processes, and one whose threads switch all the time. */
#include "tests/unit/test.h"

#include "bpf/ring_share.h"

enum { RING = 1 << 20, STACK = 2048, SHARE = RING / 64 };

/* Fills a ring that nobody drains with the waits of a process. Returns how much the ring holds then. */
static uint64_t fill(uint64_t held, uint64_t *sent, enum ring_room *end)
{
    while ((*end = ring_room(RING, held, *sent)) == RING_ROOM) {
        held += STACK;
        *sent += STACK;
    }
    return held;
}

TEST(one_process_fills_half)
{
    uint64_t sent = 0;
    enum ring_room end;

    assert_int_equal(fill(0, &sent, &end), RING / 2);
    assert_int_equal(end, RING_ROOM_OF_OTHERS);
}

TEST(others_have_their_share_then)
{
    uint64_t sent = 0;
    enum ring_room end;

    assert_int_equal(fill(RING / 2, &sent, &end), RING / 2 + SHARE);
    assert_int_equal(end, RING_ROOM_OF_OTHERS);
    assert_int_equal(sent, SHARE);
}

TEST(waits_leave_room_for_ticks)
{
    uint64_t held = 0;
    enum ring_room end = RING_ROOM;

    for (int i = 0; i < 1000; i++) {
        uint64_t sent = 0;
        held = fill(held, &sent, &end);
    }
    assert_int_equal(end, RING_ROOM_NONE);
    assert_int_equal(held, RING - RING / 8);
    /* Who has had its share loses nothing by that: it is thinned, and the rate is not lowered for all. */
    assert_int_equal(ring_room(RING, held, SHARE), RING_ROOM_OF_OTHERS);
}
