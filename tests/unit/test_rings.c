/* SPDX-License-Identifier: Apache-2.0 */
/* How many rings a host gets and how large its tables are, and in which order messages about waits leave several rings. */
#include "tests/unit/test.h"

#include "bpf/wire.h"
#include "capture/event/event_table.h"
#include "capture/sampler/map_sizes.h"
#include "capture/sampler/message_order.h"
#include "capture/sampler/ring_size.h"

static struct event_list at_rate(uint64_t hz)
{
    struct event_list list = {.count = 1};

    list.list[0] = (struct event){.source = event_source("cpu-clock"), .frequency_hz = hz};
    return list;
}

TEST(eight_cpus_share_a_ring)
{
    const struct event_list events = at_rate(99);

    for (uint32_t cpus = 1; cpus <= 8; cpus++)
        assert_int_equal(ring_sizes_of(&events, cpus, cpus, 0, 0, 0).count, 1);
    struct ring_sizes sizes = ring_sizes_of(&events, 64, 64, 0, 0, 0);
    assert_int_equal(sizes.count, 8);
    assert_int_equal(sizes.shift, 3);
    assert_int_equal(sizes.bytes, 2 << 20);
    assert_int_equal(ring_sizes_of(&events, 9, 9, 0, 0, 0).count, 2);
    assert_int_equal(ring_sizes_of(&events, 1, 512, 0, 0, 0).count, 64); /* -C 511 */
    assert_int_equal(ring_sizes_of(&events, 2, 2, 0, 0, 1).count, 2);
}

TEST(there_are_not_too_many)
{
    const struct event_list events = at_rate(999);

    for (uint32_t cpus = 1; cpus <= 8192; cpus++) {
        struct ring_sizes sizes = ring_sizes_of(&events, cpus, cpus, 0, 0, 0);
        assert_in_range(sizes.count, 1, 64);
        assert_true((cpus - 1) >> sizes.shift < sizes.count);
        assert_true((uint64_t)sizes.count * sizes.bytes <= 256u << 20);
    }
}

TEST(a_size_that_is_asked_for_is_divided)
{
    const struct event_list events = at_rate(99);

    assert_int_equal(ring_sizes_of(&events, 2, 2, 0, 64 << 20, 0).bytes, 64 << 20);
    assert_int_equal(ring_sizes_of(&events, 64, 64, 0, 64 << 20, 0).bytes, 8 << 20);
    assert_int_equal(ring_sizes_of(&events, 72, 72, 0, 64 << 20, 0).bytes, 4 << 20); /* 9 rings */
    assert_int_equal(ring_sizes_of(&events, 512, 512, 0, 4096, 0).bytes, 4096);
}

TEST(tables_follow_the_host)
{
    const struct map_sizes_host few = {100, 200, 2}, some = {10000, 10000, 2}, many = {10000, 100000, 512}, none = {.cpus = 64};
    const struct map_sizes_host most = {UINT32_MAX, UINT32_MAX, UINT32_MAX};
    struct map_sizes small = map_sizes_of(false, &few), large = map_sizes_of(false, &many), grows = map_sizes_of(true, &many);

    assert_int_equal(small.processes, 16384);
    assert_int_equal(small.threads, 16384);
    assert_int_equal(small.mappings, 262144);
    assert_int_equal(map_sizes_of(false, &some).processes, 32768);
    assert_int_equal(large.processes, 32768);
    assert_int_equal(large.threads, 131072);
    assert_int_equal(large.mappings, 524288);
    assert_int_equal(map_sizes_of(true, &none).threads, 131072); /* there may be more soon */
    assert_int_equal(grows.mappings, large.mappings);
    assert_int_equal(map_sizes_of(false, &most).threads, 131072);
    assert_int_equal(map_sizes_of(false, &most).processes, 65536);
    assert_int_equal(map_sizes_of(false, &most).mappings, 4194304);
    assert_int_equal(small.recent, 16384);
    assert_int_equal(small.senders, 4096);
    assert_int_equal(map_sizes_of(true, &none).recent, 16384);
    assert_int_equal(map_sizes_of(true, &none).senders, 16384);
    assert_int_equal(large.recent, 131072);
    assert_int_equal(large.senders, 131072);
    assert_false(map_sizes_can_grow(5, 19));
    assert_false(map_sizes_can_grow(6, 0));
    assert_true(map_sizes_can_grow(6, 1));
    assert_true(map_sizes_can_grow(7, 0));
}

/* ---- the order of messages ---- */

struct told {
    uint32_t count;
    uint32_t tids[16], types[16];
};

static struct error *tell(void *ctx, const void *message, uint32_t len_bytes)
{
    struct told *told = ctx;
    const struct wire_sample *sample = message;
    const struct wire_wait *wait = message;
    const struct wire_thread *thread = message;

    assert_true(told->count < 16);
    assert_int_equal(len_bytes, sample->type == WIRE_SAMPLE ? sizeof *sample + 8
                                : sample->type == WIRE_WAIT ? sizeof *wait : sizeof *thread);
    told->types[told->count] = sample->type;
    told->tids[told->count++] = sample->type == WIRE_SAMPLE ? sample->tid : sample->type == WIRE_WAIT ? wait->tid : thread->tid;
    return NULL;
}

static void begins(struct message_order *o, uint32_t tid, uint64_t time_ns)
{
    struct {
        struct wire_sample sample;
        uint64_t kernel;
    } m = {.sample = {.type = WIRE_SAMPLE, .flags = WIRE_WAITS, .tid = tid, .time_ns = time_ns, .kernel_count = 1}};

    assert_true(message_order_needs(&m, sizeof m));
    assert_null(message_order_add(o, &m, sizeof m));
}

static void is_over(struct message_order *o, uint32_t tid, uint64_t time_ns)
{
    const struct wire_wait m = {.type = WIRE_WAIT, .tid = tid, .in_ns = time_ns};

    assert_true(message_order_needs(&m, sizeof m));
    assert_null(message_order_add(o, &m, sizeof m));
}

static void ends(struct message_order *o, uint32_t tid, uint64_t time_ns)
{
    const struct wire_thread m = {.type = WIRE_THREAD, .tid = tid, .switched_ns = time_ns};

    assert_true(message_order_needs(&m, sizeof m));
    assert_null(message_order_add(o, &m, sizeof m));
}

/* One ring has the ends of what the ring that is read after it has the beginnings of. */
TEST(a_wait_begins_before_it_is_over)
{
    struct message_order o = {0};
    struct told told = {0};

    is_over(&o, 1, 20);
    is_over(&o, 2, 40);
    ends(&o, 1, 30);
    begins(&o, 1, 10);
    begins(&o, 2, 35);
    begins(&o, 1, 30);
    assert_null(message_order_run(&o, 30, tell, &told));
    assert_int_equal(told.count, 4);
    const uint32_t types[] = {WIRE_SAMPLE, WIRE_WAIT, WIRE_SAMPLE, WIRE_THREAD};
    assert_memory_equal(told.types, types, sizeof types);
    message_order_deinit(&o);
}

/* What is too new stays, and what comes later may be older. */
TEST(the_rest_waits)
{
    struct message_order o = {0};
    struct told told = {0};

    is_over(&o, 7, 90);
    begins(&o, 3, 50);
    is_over(&o, 5, 60);
    assert_null(message_order_run(&o, 50, tell, &told));
    begins(&o, 7, 80);
    begins(&o, 5, 55);
    assert_null(message_order_run(&o, UINT64_MAX, tell, &told));
    const uint32_t tids[] = {3, 5, 5, 7, 7};
    assert_int_equal(told.count, 5);
    assert_memory_equal(told.tids, tids, sizeof tids);
    assert_null(message_order_run(&o, UINT64_MAX, tell, &told));
    assert_int_equal(told.count, 5);
    message_order_deinit(&o);
}

TEST(other_messages_need_no_order)
{
    const struct wire_sample sample = {.type = WIRE_SAMPLE};
    const struct wire_code code = {.type = WIRE_CODE};
    const uint32_t type = WIRE_WAIT;

    assert_false(message_order_needs(&sample, sizeof sample));
    assert_false(message_order_needs(&code, sizeof code));
    assert_false(message_order_needs(&type, sizeof type)); /* cut */
}
