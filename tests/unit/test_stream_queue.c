/* SPDX-License-Identifier: Apache-2.0 */
/* What may wait for the reader of a pipe: by how fast it has read. Time is that of the test. */
#include "tests/unit/test.h"

#include "capture/output/stream_queue.h"
#include "formats/base/clock.h"

#define KIB 1024u
#define STEP_NS (100 * NS_PER_MS)

static uint8_t zeros[1u << 20];

static size_t waiting(const struct stream_queue *q)
{
    size_t len;

    stream_queue_front(q, &len);
    return len;
}

/* For so long so much comes each step and so much is taken. The most that waited. */
static size_t run(struct stream_queue *q, uint64_t *now_ns, uint64_t ns, size_t comes, size_t taken)
{
    size_t most = 0;

    for (uint64_t until = *now_ns + ns; *now_ns < until; *now_ns += STEP_NS) {
        if (stream_queue_room(q, *now_ns) == OUTPUT_ROOM_ALL)
            assert_true(stream_queue_add(q, zeros, comes, *now_ns));
        size_t rest = waiting(q);
        stream_queue_take(q, taken < rest ? taken : rest, *now_ns + STEP_NS / 2);
        most = waiting(q) > most ? waiting(q) : most;
    }
    return most;
}

TEST(order)
{
    struct stream_queue q = {0};
    uint8_t next = 0, expected = 0;

    for (uint64_t i = 1; i < 2000; i++) {
        uint8_t piece[7];
        for (size_t k = 0; k < sizeof piece; k++)
            piece[k] = next++;
        assert_true(stream_queue_add(&q, piece, sizeof piece, i));
        size_t len, take = i % 11;
        const uint8_t *front = stream_queue_front(&q, &len);
        take = take < len ? take : len;
        for (size_t k = 0; k < take; k++)
            assert_int_equal(front[k], expected++);
        stream_queue_take(&q, take, i);
    }
    stream_queue_deinit(&q);
}

/* One that reads at once never has less room, and one that stops for three seconds now and then neither. */
TEST(readers_that_keep_up)
{
    struct stream_queue q = {0};
    uint64_t now = NS_PER_S;

    run(&q, &now, 60 * NS_PER_S, 100 * KIB, 1u << 20);
    assert_int_equal(stream_queue_room(&q, now), OUTPUT_ROOM_ALL);
    for (int i = 0; i < 10; i++) {
        run(&q, &now, 3 * NS_PER_S, 10 * KIB, 0);
        assert_int_equal(stream_queue_room(&q, now), OUTPUT_ROOM_ALL);
        run(&q, &now, NS_PER_S, 10 * KIB, 4u << 20);
    }
    stream_queue_deinit(&q);
}

/* Of 10 kB/s: what waits is soon read, in seconds and not in minutes. */
TEST(slow_line)
{
    struct stream_queue q = {0};
    uint64_t now = NS_PER_S;

    run(&q, &now, 600 * NS_PER_S, 50 * KIB, KIB); /* also what waits from before it was known how slow it is */
    assert_in_range(run(&q, &now, 600 * NS_PER_S, 50 * KIB, KIB), 50 * KIB, STREAM_QUEUE_LEAST + 4 * 10 * KIB + 60 * KIB);
    stream_queue_deinit(&q);
}

/* Nothing is taken: no samples, then nothing; and everything again when half of what may wait has gone. */
TEST(stopped)
{
    struct stream_queue q = {0};
    uint64_t now = NS_PER_S;

    run(&q, &now, 60 * NS_PER_S, 10 * KIB, 0);
    assert_int_equal(stream_queue_room(&q, now), OUTPUT_ROOM_NO_SAMPLES);
    assert_in_range(waiting(&q), STREAM_QUEUE_LEAST, 2 * STREAM_QUEUE_LEAST);
    while (waiting(&q) <= STREAM_QUEUE_LIMIT)
        assert_true(stream_queue_add(&q, zeros, sizeof zeros, now));
    assert_int_equal(stream_queue_room(&q, now), OUTPUT_ROOM_NONE);
    while (waiting(&q) > STREAM_QUEUE_LEAST) {
        stream_queue_take(&q, 4 * KIB, now += STEP_NS);
        enum output_room room = stream_queue_room(&q, now);
        if (room != OUTPUT_ROOM_NONE)
            break;
    }
    assert_int_equal(q.room, OUTPUT_ROOM_ALL); /* nothing but what it defines anew can follow what was left out */
    stream_queue_take(&q, waiting(&q), now += STEP_NS);
    assert_int_equal(stream_queue_room(&q, now), OUTPUT_ROOM_ALL);
    stream_queue_deinit(&q);
}
