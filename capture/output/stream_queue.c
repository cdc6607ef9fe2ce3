/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's speed is what it took while there was something to take; what is older than some seconds counts half. */
#include "capture/output/stream_queue.h"

#include <string.h>

#include "formats/base/clock.h"

/* So much time is worth remembering, and before this much the speed is not known. */
#define REMEMBERED_NS (8 * NS_PER_S)
#define KNOWN_NS (NS_PER_S / 2)
/* What the reader takes in this time may wait. */
#define AHEAD_S 4
/* A buffer that is larger is given back when it is empty. */
#define KEPT_BYTES (256u << 10)

void stream_queue_deinit(struct stream_queue *q)
{
    buf_deinit(&q->bytes);
    *q = (struct stream_queue){0};
}

static size_t waiting(const struct stream_queue *q)
{
    return q->bytes.len_bytes - q->taken;
}

/* What is at the front already moves there when that is cheap. */
static void close_gap(struct stream_queue *q)
{
    size_t rest = waiting(q);

    if (q->taken < rest || !q->taken)
        return;
    if (rest)
        memmove(q->bytes.data, q->bytes.data + q->taken, rest);
    q->bytes.len_bytes = rest;
    q->taken = 0;
    if (!rest && q->bytes.cap_bytes > KEPT_BYTES)
        buf_deinit(&q->bytes);
}

bool stream_queue_add(struct stream_queue *q, const void *data, size_t len_bytes, uint64_t time_ns)
{
    if (!waiting(q))
        q->since_ns = time_ns;
    buf_put(&q->bytes, data, len_bytes);
    return !q->bytes.bad;
}

const uint8_t *stream_queue_front(const struct stream_queue *q, size_t *len_bytes)
{
    *len_bytes = waiting(q);
    return q->bytes.data ? q->bytes.data + q->taken : NULL;
}

static void measure(struct stream_queue *q, size_t len_bytes, uint64_t time_ns)
{
    q->busy_ns += time_ns > q->since_ns ? time_ns - q->since_ns : 0;
    q->busy_bytes += len_bytes;
    q->since_ns = time_ns;
    while (q->busy_ns > REMEMBERED_NS) {
        q->busy_ns /= 2;
        q->busy_bytes /= 2;
    }
}

void stream_queue_take(struct stream_queue *q, size_t len_bytes, uint64_t time_ns)
{
    if (!waiting(q))
        return;
    measure(q, len_bytes, time_ns);
    q->taken += len_bytes;
    close_gap(q);
}

/* What may wait. */
static uint64_t allowed(const struct stream_queue *q)
{
    if (q->busy_ns < KNOWN_NS)
        return STREAM_QUEUE_MOST;
    double ahead = (double)q->busy_bytes / (double)q->busy_ns * (double)(AHEAD_S * NS_PER_S);
    return ahead > STREAM_QUEUE_MOST - STREAM_QUEUE_LEAST ? STREAM_QUEUE_MOST : STREAM_QUEUE_LEAST + (uint64_t)ahead;
}

enum output_room stream_queue_room(struct stream_queue *q, uint64_t time_ns)
{
    size_t bytes = waiting(q);

    if (bytes)
        measure(q, 0, time_ns);
    uint64_t most = allowed(q);
    if (bytes > (q->limit ? q->limit : STREAM_QUEUE_LIMIT))
        q->room = OUTPUT_ROOM_NONE;
    else if (bytes <= most / 2)
        q->room = OUTPUT_ROOM_ALL;
    else if (bytes > most && q->room != OUTPUT_ROOM_NONE)
        q->room = OUTPUT_ROOM_NO_SAMPLES;
    else if (!q->room)
        q->room = OUTPUT_ROOM_ALL;
    return q->room;
}
