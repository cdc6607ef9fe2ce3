/* SPDX-License-Identifier: Apache-2.0 */
/* What recorders lost, by window of time and capture: what is added up, and in which order it is taken. */
#include "tests/unit/test.h"

#include "symbolize/pass/loss_windows.h"

static void add(struct loss_windows *w, uint64_t window, uint32_t capture, uint64_t last_ns, const char *name, const char *event, uint64_t count)
{
    const struct loss_window_row row = {
        .window = window, .capture = capture, .last_ns = last_ns, .loss = {.name = name, .meaning = "", .event = event, .count = count}};

    assert_true(loss_windows_add(w, &row));
}

static void expect(struct loss_windows *w, uint64_t before, uint64_t window, uint32_t capture, uint64_t last_ns, uint32_t rows, uint64_t first)
{
    struct window_losses l;

    assert_true(loss_windows_take(w, before, &l));
    assert_int_equal(l.window, window);
    assert_int_equal(l.capture, capture);
    assert_int_equal(l.last_ns, last_ns);
    assert_int_equal(l.count, rows);
    assert_int_equal(l.losses[0].count, first);
}

/* Losses of one name, event, window and capture are one; other windows and captures have their own. */
TEST(by_window_and_capture)
{
    struct loss_windows w = {0};
    struct window_losses none;

    add(&w, 8, 1, 80, "ring_full", "", 1);
    add(&w, 7, 2, 71, "ring_full", "", 10);
    add(&w, 7, 1, 75, "ring_full", "", 100);
    add(&w, 7, 1, 73, "ring_full", "", 1000);
    add(&w, 7, 1, 79, "ring_full", "cpu-clock", 5);
    add(&w, 7, 2, 72, "ring_full", "", 10000);
    add(&w, 9, 1, 90, "ring_full", "", 3);
    expect(&w, 9, 7, 1, 79, 2, 1100);
    expect(&w, 9, 7, 2, 72, 1, 10010);
    expect(&w, 9, 8, 1, 80, 1, 1);
    assert_true(loss_windows_take(&w, 9, &none));
    assert_int_equal(none.count, 0);
    expect(&w, 10, 9, 1, 90, 1, 3);
    loss_windows_deinit(&w);
}
