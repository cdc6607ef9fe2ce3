/* SPDX-License-Identifier: Apache-2.0 */
/* One axis of time for several inputs, on which times never decrease. */
#include "tests/unit/test.h"

#include "formats/emit/perf_data/timeline.h"

static uint64_t place(struct timeline *t, const struct emit_capture *captures, uint32_t capture, uint64_t time_ns)
{
    const struct emit_model model = {.captures = captures, .capture_count = 3};

    return timeline_place(t, &model, &(struct emit_sample){.time_ns = time_ns, .capture = capture});
}

TEST(timeline)
{
    const uint64_t second = 1000000000, wall = 1800000000 * second;
    struct emit_capture c[3] = {{.monotonic_ns = second, .realtime_ns = wall},
                                {.monotonic_ns = 50 * second, .realtime_ns = wall + 49 * second + 3000},
                                {.monotonic_ns = 7, .realtime_ns = wall + 100 * second}};
    struct timeline t = {0};

    assert_int_equal(place(&t, c, 0, 5 * second), 5 * second);
    assert_int_equal(place(&t, c, 0, 4 * second), 5 * second); /* too late: not back in time */
    /* The same boot, its wall clock adjusted by microseconds: the clock is the same. */
    assert_int_equal(place(&t, c, 1, 50 * second), 50 * second);
    assert_int_equal(place(&t, c, 1, 51 * second), 51 * second);
    /* Another boot, by the wall clock. */
    assert_int_equal(place(&t, c, 2, 7 + second), 102 * second);
    assert_false(t.moved);
    assert_int_equal(t.first_ns, 5 * second);
    assert_int_equal(t.last_ns, 102 * second);

    /* Recorded at the same time, or without clocks: the second stands behind the first. */
    for (int clocks = 0; clocks < 2; clocks++) {
        if (!clocks)
            c[1] = (struct emit_capture){0};
        t = (struct timeline){0};
        place(&t, c, 0, 5 * second);
        assert_int_equal(place(&t, c, 1, 3 * second), 5 * second);
        assert_int_equal(place(&t, c, 1, 4 * second), 6 * second);
        assert_true(t.moved);
    }
    /* Nonsense stays in range. */
    t = (struct timeline){0};
    assert_int_equal(place(&t, c, 0, 0), 1);
    assert_true(place(&t, c, 0, UINT64_MAX) < UINT64_MAX);
    c[2].realtime_ns = UINT64_MAX;
    assert_true(place(&t, c, 2, UINT64_MAX) < UINT64_MAX);
    assert_true(place(&t, c, 1, 1) < UINT64_MAX);
}
