/* SPDX-License-Identifier: Apache-2.0 */
/* What the samples of a thread's waits add up to, beside the exact time of each kind. */
#include "tests/unit/test.h"

#include "symbolize/summary/thread_waits.h"

enum { THREAD = 3 };

/* The kind of wait is 10 to the power of its number in ns, so that a sum shows what is in it. */
static uint64_t ns_of(enum emit_wait wait)
{
    uint64_t ns = 1;

    for (int i = 0; i < (int)wait; i++)
        ns *= 10;
    return ns;
}

static uint64_t sampled(const struct map *sums, uint32_t thread, enum emit_wait wait)
{
    return thread_waits_sampled(sums, &(struct emit_exact_time){.thread = thread, .wait = wait});
}

/* A thread that waits for a CPU does not sleep, whether it was woken or preempted; all other waits are sleep. */
TEST(sleep_is_any_wait_but_for_a_cpu)
{
    struct map sums = {0};
    uint64_t asleep = 0;

    for (int wait = EMIT_WAIT_NONE + 1; wait <= EMIT_WAIT_ASLEEP; wait++) {
        assert_true(map_set(&sums, (uint64_t)THREAD << 32 | (uint32_t)wait, ns_of((enum emit_wait)wait)));
        asleep += ns_of((enum emit_wait)wait);
    }
    asleep -= ns_of(EMIT_WAIT_RUN_QUEUE) + ns_of(EMIT_WAIT_PREEMPTED);
    for (int wait = EMIT_WAIT_NONE + 1; wait < EMIT_WAIT_ASLEEP; wait++)
        assert_int_equal(sampled(&sums, THREAD, (enum emit_wait)wait), ns_of((enum emit_wait)wait));
    assert_int_equal(sampled(&sums, THREAD, EMIT_WAIT_ASLEEP), asleep);
    assert_int_equal(sampled(&sums, THREAD, EMIT_WAIT_NONE), 0);
    assert_int_equal(sampled(&sums, THREAD + 1, EMIT_WAIT_ASLEEP), 0);
    map_deinit(&sums);
}
