/* SPDX-License-Identifier: Apache-2.0 */
/* The rate that a budget allows. */
#include "tests/unit/test.h"

#include "capture/session/budget.h"

#define SECOND UINT64_C(1000000000)

enum { MEMORY = 64 << 20 };

static struct budget start(uint64_t hz, double cpu, uint64_t bytes)
{
    struct budget b;

    budget_init(&b, &(struct budget_options){hz, cpu, bytes, MEMORY}, &(struct budget_use){.time_ns = 5 * SECOND});
    return b;
}

/* One second later, in which of 1,000 samples so many were lost. */
static enum budget_reason second(struct budget *b, uint64_t cpu_ns, uint64_t lost, uint64_t bytes)
{
    struct budget_use now = {.time_ns = b->last.time_ns + SECOND, .cpu_ns = b->last.cpu_ns + cpu_ns,
                             .sampled = b->last.sampled + 1000 - lost, .lost = b->last.lost + lost, .bytes = b->last.bytes + bytes};

    return budget_step(b, &now);
}

TEST(nothing_to_do)
{
    struct budget b = start(999, 0, 0);

    for (int i = 0; i < 100; i++)
        assert_int_equal(second(&b, SECOND, 0, 1 << 30), BUDGET_UNCHANGED);
    assert_int_equal(b.rate, 999);
}

/*
 * A full buffer lowers the rate by the part that was lost, and somewhat more, but not beyond a half; a few samples lower it not at
 * all. Ten quiet seconds bring a part of it back, and never more than was asked for.
 */
TEST(lost)
{
    struct budget b = start(1000, 0, 0);

    assert_int_equal(second(&b, 0, 10, 0), BUDGET_UNCHANGED);
    assert_int_equal(second(&b, 0, 100, 0), BUDGET_LOST);
    assert_int_equal(b.rate, 810);
    assert_int_equal(second(&b, 0, 900, 0), BUDGET_LOST);
    assert_int_equal(b.rate, 405);
    for (int i = 0; i < 9; i++)
        assert_int_equal(second(&b, 0, 0, 0), BUDGET_UNCHANGED);
    assert_int_equal(second(&b, 0, 0, 0), BUDGET_ROOM);
    assert_int_equal(b.rate, 608);
    for (int i = 0; i < 100; i++)
        second(&b, 0, 0, 0);
    assert_int_equal(b.rate, 1000);
    assert_int_equal(b.steps, 2);
}

/* A part just below a half lowers the rate no further than all the others. */
TEST(nearly_half_lost)
{
    struct budget b = start(1000, 0, 0);

    assert_int_equal(second(&b, 0, 470, 0), BUDGET_LOST);
    assert_int_equal(b.rate, 500);
}

/* CPU use is proportional to the rate: one step brings it under the limit, where it stays. */
TEST(cpu)
{
    struct budget b = start(10000, 0.01, 0);
    int steps = 0;

    for (int i = 0; i < 60; i++)
        steps += second(&b, b.rate * 5000, 0, 0) != BUDGET_UNCHANGED;
    assert_int_equal(steps, 1);
    assert_in_range(b.rate, 1700, 2000);
}

/* What no rate changes is left out of account, and said; some of the CPU remains for samples. */
TEST(cpu_that_no_rate_changes)
{
    const uint64_t fixed[] = {SECOND / 200, SECOND / 8};
    const uint64_t rates[] = {900, 450}; /* half of 1 %, a quarter of it, and each a tenth below */

    for (int i = 0; i < 2; i++) {
        struct budget b = start(10000, 0.01, 0);
        for (int k = 0; k < 60; k++) {
            struct budget_use now = b.last;
            now.time_ns += SECOND;
            now.fixed_ns += fixed[i];
            now.cpu_ns += fixed[i] + b.rate * 5000;
            budget_step(&b, &now);
        }
        assert_in_range(b.rate, rates[i] - 1, rates[i]);
        assert_true(i ? b.fixed == 0.125 : b.fixed == 0);
    }
}

TEST(never_nothing)
{
    struct budget b = start(3, 0.001, 0);

    for (int i = 0; i < 20; i++)
        second(&b, SECOND, 500, 0);
    assert_int_equal(b.rate, 1);
    b = start(300, 0.001, 0);
    b.options.least = 30;
    for (int i = 0; i < 20; i++)
        second(&b, SECOND, 500, 0);
    assert_int_equal(b.rate, 30);
}

/* As long as more is held than allowed, and it comes back when there is less. */
TEST(memory)
{
    struct budget b = start(1000, 0, 0);
    struct budget_use use = {.time_ns = 5 * SECOND};

    for (int i = 0; i < 3; i++) {
        use.time_ns += SECOND;
        use.memory = MEMORY + 1;
        assert_int_equal(budget_step(&b, &use), BUDGET_MEMORY);
    }
    assert_int_equal(b.rate, 125);
    use.memory = MEMORY;
    for (int i = 0; i < 60; i++) {
        use.time_ns += SECOND;
        assert_int_not_equal(budget_step(&b, &use), BUDGET_MEMORY);
    }
    assert_int_equal(b.rate, 1000);
}

/* The nearer the limit the slower; the steps stay; at the limit the capture ends. */
TEST(bytes)
{
    struct budget b = start(1000, 0, 1 << 20);
    uint64_t last = 1000;
    enum budget_reason reason = BUDGET_UNCHANGED;

    for (int i = 0; i < 2000 && reason != BUDGET_END; i++) {
        reason = second(&b, 0, 0, b.rate * 16);
        assert_true(b.rate <= last);
        last = b.rate;
    }
    assert_int_equal(last, 1000 >> 9);
    b = start(1000, 0, 1000);
    assert_int_equal(second(&b, 0, 0, 900), BUDGET_BYTES); /* several at once are one step */
    assert_int_equal(b.rate, 500);
    assert_int_equal(second(&b, 0, 0, 200), BUDGET_END);
}
