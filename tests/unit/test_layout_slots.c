/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which layouts the sampler has: those of versions.def always, others shared by equal processes, given to others when nobody
 * has them, and a share for each user.
 */
#include "tests/unit/test.h"

#include "capture/process/layout_slots.h"
#include "formats/base/clock.h"
#include "formats/cpython/layout_find.h"

enum { USER = 1000, OTHER = 2000, S = 1000000000 };

static struct layout_slots slots;
static struct quotas *quotas;

static int setup(void **state)
{
    (void)state;
    slots = (struct layout_slots){0};
    return quotas_create(&quotas) != NULL;
}

static int teardown(void **state)
{
    (void)state;
    quotas_destroy(quotas);
    return 0;
}

static void begin(uint32_t slot, uint32_t owner)
{
    OK(quotas_begin(quotas, slot, owner, false));
}

static uint32_t take(uint32_t slot, uint16_t number, uint64_t time_ns, bool *fresh)
{
    const struct py_layout layout = {.interp_modules = number};

    return layout_slots_take(&slots, quotas, slot, &layout, time_ns, fresh);
}

static void leave(uint32_t index, uint32_t slot, uint32_t heir, uint64_t time_ns)
{
    layout_slots_leave(&slots, quotas, index, slot, heir, time_ns);
}

TEST_WITH(shared, setup, teardown)
{
    bool fresh;

    begin(0, USER);
    begin(1, USER);
    uint32_t a = take(0, 1, S, &fresh);
    assert_true(fresh && a != LAYOUT_NONE);
    assert_int_equal(take(1, 1, S, &fresh), a);
    assert_false(fresh);
    uint32_t b = take(1, 2, S, &fresh);
    assert_true(fresh && b != a);
    /* The one that brought it ends: the other pays, and it stays. */
    assert_true(layout_slots_wants_heir(&slots, a, 0));
    assert_false(layout_slots_wants_heir(&slots, a, 1));
    leave(a, 0, 1, 2 * (uint64_t)S);
    assert_true(layout_slots_may_have_room(&slots, 2 * (uint64_t)S)); /* in his quota */
    assert_false(layout_slots_wants_heir(&slots, a, 1));
    leave(a, 1, 0, 2 * (uint64_t)S);
    /* It is given to nobody else as long as a child may have it, but to one that is equal. */
    assert_true(layout_slots_may_have_room(&slots, 3 * (uint64_t)S));
    assert_true(layout_slots_may_have_room(&slots, 7 * (uint64_t)S));
    assert_false(layout_slots_may_have_room(&slots, 7 * (uint64_t)S + 1));
    begin(2, USER);
    assert_int_not_equal(take(2, 3, 2 * (uint64_t)S + 1, &fresh), a);
    assert_int_equal(take(2, 1, 2 * (uint64_t)S + 1, &fresh), a);
    assert_false(fresh);
    leave(a, 2, 0, 2 * (uint64_t)S + 1);
    assert_int_equal(take(2, 4, 8 * (uint64_t)S, &fresh), a);
    assert_true(fresh);
}

/* A user who makes up interpreters leaves room for others. */
TEST_WITH(hostile, setup, teardown)
{
    uint64_t refused[QUOTA_COUNT];
    uint32_t taken = 0;
    bool fresh;

    for (uint32_t slot = 0; slot < 200; slot++) {
        begin(slot, USER);
        taken += take(slot, (uint16_t)(slot + 1), S, &fresh) != LAYOUT_NONE;
    }
    assert_in_range(taken, 20, LAYOUT_SLOTS_MAX / 2);
    assert_false(quotas_refused(quotas, 199, refused)); /* the caller counts a process once, however often it asks */
    for (uint32_t slot = 200; slot < 210; slot++) {
        begin(slot, OTHER);
        assert_int_not_equal(take(slot, (uint16_t)(slot + 1), S, &fresh), LAYOUT_NONE);
    }
}

/* However many users bring layouts of their own: a known version, of whichever patch release or build, has its place. */
TEST_WITH(rows, setup, teardown)
{
    static const uint32_t versions[] = {0x020712f0, 0x030300f0, 0x03060ff0, 0x030703f0, 0x030711f0, 0x030812f0,
                                        0x030912f0, 0x030a0df0, 0x030b02f0, 0x030b3ff0, 0x030c01f0};
    uint32_t taken = 0, slot = 0;
    struct py_layout layout;
    bool fresh;

    for (; slot < 1000; slot++) {
        begin(slot, USER + slot);
        taken += take(slot, (uint16_t)(slot + 1), S, &fresh) != LAYOUT_NONE;
    }
    assert_in_range(taken, 20, LAYOUT_SLOTS_MAX);
    for (uint32_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        for (uint32_t debug = 0; debug < 2; debug++) {
            OK(py_layout_find(versions[i], debug, NULL, 0, &layout));
            py_layout_of_walk(&layout);
            begin(slot, OTHER);
            uint32_t index = layout_slots_take(&slots, quotas, slot, &layout, S, &fresh);
            assert_int_not_equal(index, LAYOUT_NONE);
            assert_false(layout_slots_wants_heir(&slots, index, slot));
            leave(index, slot++, 0, S);
            assert_int_equal(layout_slots_take(&slots, quotas, slot, &layout, 9 * (uint64_t)S, &fresh), index);
            assert_false(fresh); /* the sampler keeps it */
        }
    }
}

/* What differs in nothing that the frame walk looks at has one place. */
TEST_WITH(patch_releases, setup, teardown)
{
    struct py_layout first, other;
    bool fresh;

    begin(0, USER);
    OK(py_layout_find(0x030b02f0, false, NULL, 0, &first));
    py_layout_of_walk(&first);
    uint32_t index = layout_slots_take(&slots, quotas, 0, &first, S, &fresh);
    assert_true(fresh);
    for (uint32_t patch = 0; patch < 64; patch++) {
        OK(py_layout_find(0x030b00f0 | patch << 8, false, NULL, 0, &other));
        py_layout_of_walk(&other);
        assert_int_equal(layout_slots_take(&slots, quotas, 0, &other, S, &fresh), index);
        assert_false(fresh);
    }
}
