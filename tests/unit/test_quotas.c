/* SPDX-License-Identifier: Apache-2.0 */
/* What one process may make pycap do, and what is left for others. */
#include "tests/unit/test.h"

#include "capture/host/owner.h"
#include "capture/host/quotas.h"
#include "formats/trace/trace.h"

#define SECOND UINT64_C(1000000000)

enum { ALICE = 1000, MALLORY = 4242, KIB = 1 << 10, MIB = 1 << 20 };

struct limit {
    uint64_t per_second, burst, pool, first;
};
static const struct limit limits[QUOTA_COUNT] = {
#define QUOTA(name, loss, unit, per_second, burst, pool, first) {per_second, burst, pool, first},
#include "capture/host/quotas.def"
#undef QUOTA
};
static const struct limit *const code = &limits[QUOTA_line_bytes];

static struct quotas *begin(uint32_t count, uint64_t uid, bool named)
{
    struct quotas *q;

    OK(quotas_create(&q));
    for (uint32_t i = 0; i < count; i++)
        OK(quotas_begin(q, i, uid, named));
    return q;
}

/* Takes as much as it gets, in pieces; returns how much that was. */
static uint64_t take_all(struct quotas *q, uint32_t slot, enum quota kind, uint64_t piece, uint64_t time_ns)
{
    uint64_t taken = 0;

    while (quota_take(q, slot, kind, piece, time_ns))
        taken += piece;
    return taken;
}

TEST(burst_and_rate)
{
    struct quotas *q = begin(1, ALICE, false);
    uint64_t counts[QUOTA_COUNT];

    assert_int_equal(take_all(q, 0, QUOTA_line_bytes, KIB, SECOND), code->burst);
    assert_true(quotas_any_refused(q));
    assert_true(quotas_refused(q, 0, counts));
    assert_int_equal(counts[QUOTA_line_bytes], 1);
    assert_int_equal(counts[QUOTA_events], 0);
    assert_false(quotas_any_refused(q));
    assert_false(quotas_refused(q, 0, counts));
    assert_int_equal(take_all(q, 0, QUOTA_line_bytes, KIB, 3 * SECOND), 2 * code->per_second);
    assert_int_equal(take_all(q, 0, QUOTA_line_bytes, KIB, 2 * SECOND), 0); /* the clock went back */
    quotas_destroy(q);
}

/* What is owed is taken beyond the burst, and nothing more is given until it has flown out. */
TEST(owing)
{
    struct quotas *q = begin(1, ALICE, false);

    assert_true(quota_owe(q, 0, QUOTA_line_bytes, code->burst, SECOND));
    assert_false(quota_owe(q, 0, QUOTA_line_bytes, code->per_second, SECOND));
    assert_false(quotas_any_refused(q));
    assert_false(quota_take(q, 0, QUOTA_line_bytes, 1, 2 * SECOND));
    assert_true(quota_take(q, 0, QUOTA_line_bytes, code->per_second, 3 * SECOND));
    assert_false(quota_owe(q, 1, QUOTA_line_bytes, 1, SECOND)); /* nobody has the slot */
    quotas_destroy(q);
}

/* However often it is asked, no fraction of a unit is lost or won. */
TEST(rate_of_many_calls)
{
    struct quotas *q = begin(1, ALICE, false);
    uint64_t taken = 0, time_ns = SECOND;

    take_all(q, 0, QUOTA_events, 1, time_ns);
    for (int i = 0; i < 100000; i++)
        taken += take_all(q, 0, QUOTA_events, 1, time_ns += 12345);
    assert_in_range(taken, 1234 * limits[QUOTA_events].per_second / 1000 - 1, 1235 * limits[QUOTA_events].per_second / 1000);
    quotas_destroy(q);
}

/* A hundred processes of one user get no more than half of the pool, or of its reserve; another user's still gets its burst. */
TEST(forks)
{
    struct quotas *q = begin(100, MALLORY, false);
    uint64_t taken = 0;

    OK(quotas_begin(q, 100, ALICE, false));
    for (uint32_t i = 0; i < 100; i++)
        taken += take_all(q, i, QUOTA_line_bytes, KIB, SECOND);
    assert_in_range(taken, code->burst * code->pool / 2, code->burst * code->pool / 2 + code->burst * code->pool / 16);
    uint64_t left = (code->burst * code->pool - taken) / 2; /* half of it */
    assert_int_equal(take_all(q, 100, QUOTA_line_bytes, KIB, SECOND), left < code->burst ? left : code->burst);
    quotas_destroy(q);
}

/* Of a kind that comes with samples more of them make more; the others stay as they are. */
TEST(scale)
{
    struct quotas *q = begin(2, ALICE, true);

    quotas_scale(q, QUOTA_line_bytes, 3, 10);
    quotas_set_owner(q, 0, ALICE, false);
    assert_int_equal(take_all(q, 0, QUOTA_line_bytes, KIB, SECOND), 3 * code->burst);
    assert_int_equal(take_all(q, 0, QUOTA_line_bytes, KIB, 2 * SECOND), 3 * code->per_second);
    assert_in_range(take_all(q, 1, QUOTA_line_bytes, KIB, 2 * SECOND), 3 * code->burst * (10 * code->pool - 1),
                    3 * code->burst * 10 * code->pool);
    assert_int_equal(take_all(q, 0, QUOTA_name_bytes, 1, SECOND), limits[QUOTA_name_bytes].burst);
    quotas_destroy(q);
}

/* The pool is never overdrawn, by however many users. */
TEST(users)
{
    struct quotas *q;
    uint64_t taken = 0;

    OK(quotas_create(&q));
    for (uint32_t i = 0; i < 3000; i++) {
        OK(quotas_begin(q, i, i, false));
        taken += take_all(q, i, QUOTA_line_bytes, KIB, SECOND);
    }
    assert_in_range(taken, code->burst * code->pool / 2, code->burst * code->pool);
    quotas_destroy(q);
}

/* Takes of a kind with many processes of each of `count` owners, from `first` on, `step` apart, until none gets more. */
static void exhaust(struct quotas *q, enum quota kind, uint64_t first, uint32_t count, uint64_t step)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t n = 0; n < 4; n++) {
            OK(quotas_begin(q, i * 4 + n, first + i * step, false));
            take_all(q, i * 4 + n, kind, 1, SECOND);
        }
    }
}

/* Whatever many users have taken, and for how long: what a new program needs first is there. */
TEST(reserve)
{
    for (uint32_t kind = 0; kind < QUOTA_COUNT; kind++) {
        const struct limit *l = &limits[kind];
        uint32_t owners = kind == QUOTA_layouts ? 1 : 14;
        struct quotas *q;

        assert_true(l->burst * l->pool / 16 >= (kind == QUOTA_layouts ? 2 : 16) * l->first);
        if (!l->first || l->first > 1000)
            continue;
        OK(quotas_create(&q));
        exhaust(q, (enum quota)kind, MALLORY, owners, 1);
        OK(quotas_begin(q, 100, ALICE, false));
        assert_true(quota_take(q, 100, (enum quota)kind, l->first, SECOND));
        quotas_end(q, 100);
        OK(quotas_begin(q, 100, ALICE + 1, false));
        assert_true(quota_take(q, 100, (enum quota)kind, l->first, SECOND));
        quotas_destroy(q);
    }
}

/* Of the reserve, too, nobody gets more than a half by many programs that begin. */
TEST(reserve_is_shared)
{
    const struct limit *l = &limits[QUOTA_modules];
    struct quotas *q = begin(0, 0, false);
    uint32_t programs = 0;

    exhaust(q, QUOTA_modules, MALLORY, 20, 1);
    for (uint32_t slot = 1000; slot < 3000; slot++) {
        OK(quotas_begin(q, slot, MALLORY, false));
        take_all(q, slot, QUOTA_modules, 1, SECOND);
    }
    for (uint32_t slot = 3000; slot < 3100; slot++) {
        OK(quotas_begin(q, slot, ALICE, false));
        programs += quota_take(q, slot, QUOTA_modules, l->first / 4, SECOND);
    }
    assert_true(programs >= 2);
    quotas_destroy(q);
}

/* What was held of the reserve goes back there, also when the owner changes. */
TEST(reserve_is_given_back)
{
    const struct limit *l = &limits[QUOTA_places];
    struct quotas *q = begin(0, 0, false);

    exhaust(q, QUOTA_places, MALLORY, 20, 1);
    for (uint32_t i = 0; i < 1000; i++) {
        OK(quotas_begin(q, 500, ALICE, false));
        assert_true(quota_take(q, 500, QUOTA_places, l->first, SECOND));
        quotas_set_owner(q, 500, ALICE + 1, false);
        if (i % 2)
            quota_give(q, 500, QUOTA_places, l->first / 2);
        quotas_end(q, 500);
    }
    quotas_destroy(q);
}

/* As many ids as somebody is given by /etc/subuid count as one more owner. */
TEST(blocks)
{
    struct quotas *q = begin(0, 0, false);

    for (uint64_t uid = 3 << 16; uid < 4 << 16; uid++) {
        OK(quotas_begin(q, (uint32_t)(uid & 1023), uid, false));
        take_all(q, (uint32_t)(uid & 1023), QUOTA_line_bytes, 64 * KIB, SECOND);
    }
    OK(quotas_begin(q, 5000, ALICE, false));
    assert_true(take_all(q, 5000, QUOTA_line_bytes, KIB, SECOND) >= code->burst * code->pool / 8);
    OK(quotas_begin(q, 5001, ALICE + 1, false)); /* they left places for others, too */
    assert_true(take_all(q, 5001, QUOTA_line_bytes, KIB, SECOND) >= code->burst * code->pool / 16);
    quotas_destroy(q);
}

/* Ids of one block are told apart from each other. */
TEST(within_a_block)
{
    const uint64_t block = 5 << 16;
    struct quotas *q = begin(0, 0, false);

    OK(quotas_begin(q, 0, block, false));
    take_all(q, 0, QUOTA_line_bytes, KIB, SECOND);
    OK(quotas_begin(q, 1, block, false));
    take_all(q, 1, QUOTA_line_bytes, KIB, SECOND);
    OK(quotas_begin(q, 2, block + 1, false));
    assert_true(quota_take(q, 2, QUOTA_line_bytes, code->first, SECOND));
    quotas_destroy(q);
}

/* Users that are gone make room for others. */
TEST(users_in_turn)
{
    struct quotas *q;

    OK(quotas_create(&q));
    for (uint32_t i = 0; i < 3000; i++) {
        OK(quotas_begin(q, 0, i, false));
        assert_true(quota_take(q, 0, QUOTA_places, limits[QUOTA_places].burst, i * SECOND));
        assert_true(quota_take(q, 0, QUOTA_events, limits[QUOTA_events].burst, i * SECOND * 100));
        quotas_end(q, 0);
    }
    quotas_destroy(q);
}

/* So do their blocks. */
TEST(blocks_in_turn)
{
    struct quotas *q;

    OK(quotas_create(&q));
    for (uint64_t i = 0; i < 3000; i++) {
        OK(quotas_begin(q, 0, i << 16 | i, false));
        assert_true(quota_take(q, 0, QUOTA_places, limits[QUOTA_places].burst, i * SECOND));
        assert_true(quota_take(q, 0, QUOTA_events, limits[QUOTA_events].burst, i * SECOND * 100));
        if (i % 2)
            quotas_set_owner(q, 0, (i + 7) << 16, false);
        quotas_end(q, 0);
    }
    quotas_destroy(q);
}

TEST(named)
{
    struct quotas *q = begin(1, ALICE, true);

    assert_int_equal(take_all(q, 0, QUOTA_line_bytes, KIB, SECOND), code->burst * code->pool);
    quotas_destroy(q);
}

/* What is held stays until it is given back, or its holder ends. */
TEST(held)
{
    struct quotas *q = begin(3, ALICE, false);
    const uint64_t burst = limits[QUOTA_places].burst;

    for (int i = 0; i < 10; i++) {
        assert_true(quota_take(q, 0, QUOTA_places, burst, SECOND));
        assert_false(quota_take(q, 0, QUOTA_places, 1, 1000 * SECOND));
        quota_give(q, 0, QUOTA_places, burst);
    }
    for (int i = 0; i < 10; i++) {
        assert_true(quota_take(q, 1, QUOTA_places, burst, SECOND));
        quotas_set_owner(q, 1, MALLORY, false);
        quotas_end(q, 1);
        assert_false(quota_take(q, 1, QUOTA_places, 1, SECOND)); /* nobody has the slot */
        OK(quotas_begin(q, 1, ALICE, false));
    }
    quotas_destroy(q);
}

TEST(losses)
{
    for (uint32_t i = 0; i < QUOTA_COUNT; i++) {
        assert_string_not_equal(trace_loss_name(quota_loss((enum quota)i)), "");
        assert_true(limits[i].burst && limits[i].pool > 1);
        assert_string_not_equal(quota_unit((enum quota)i), "");
    }
    assert_string_equal(trace_loss_name(quota_loss(QUOTA_line_bytes)), "line_quota");
}
