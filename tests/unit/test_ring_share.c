/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the ring waits may fill: all processes, one whose threads switch all the time, and the many of one owner. */
#include "tests/unit/test.h"

#include "bpf/ring_share.h"

enum { RING = 1 << 20, STACK = 2048, SHARE = RING / 64, OWNERS_SHARE = RING / 16 };

/* Fills a ring that nobody drains with the waits of a process. Returns how much the ring holds then. */
static uint64_t fill_of(uint64_t held, uint64_t *sent, uint64_t *owner_sent, enum ring_room *end)
{
    while ((*end = ring_room(RING, held, *sent, *owner_sent)) == RING_ROOM) {
        held += STACK;
        *sent += STACK;
        *owner_sent += STACK;
    }
    return held;
}

/* Of an owner who has no other process. */
static uint64_t fill(uint64_t held, uint64_t *sent, enum ring_room *end)
{
    uint64_t owner_sent = *sent;

    return fill_of(held, sent, &owner_sent, end);
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
    assert_int_equal(ring_room(RING, held, SHARE, SHARE), RING_ROOM_OF_OTHERS);
}

/* A thousand processes of one owner leave room to those of another, and these to a third. */
TEST(owners_have_shares)
{
    uint64_t held = 0, of_one = 0, sent;
    enum ring_room end = RING_ROOM;

    for (int i = 0; i < 1000; i++) {
        sent = 0;
        held = fill_of(held, &sent, &of_one, &end);
    }
    assert_int_equal(end, RING_ROOM_OF_OTHERS);
    assert_int_equal(held, RING - RING / 4);
    uint64_t before = held;
    for (uint64_t i = 0, of_another = 0; i < 1000; i++) {
        sent = 0;
        held = fill_of(held, &sent, &of_another, &end);
    }
    assert_int_equal(end, RING_ROOM_OF_OTHERS);
    assert_int_equal(held, before + OWNERS_SHARE);
    sent = 0;
    held = fill(held, &sent, &end);
    assert_int_equal(sent, SHARE);
}
