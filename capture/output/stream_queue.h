/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits to be taken by the reader of a pipe. The recording does not wait for that reader: it is told how much room there
 * is, and leaves out samples, or everything, until there is more.
 *
 * How much may wait depends on how fast the reader took what was offered before: four seconds' worth, and a little. So a
 * reader that stops for some seconds now and then misses nothing, and one behind a slow line sees what is new, not what was
 * new a while ago. Times are CLOCK_MONOTONIC, in ns.
 */
#ifndef CAPTURE_OUTPUT_STREAM_QUEUE_H
#define CAPTURE_OUTPUT_STREAM_QUEUE_H

#include "capture/output/output_protocol.h"
#include "formats/base/buf.h"

/* What may wait without samples being left out, at least and at most; and with samples only being left out. */
#define STREAM_QUEUE_LEAST (64u << 10)
#define STREAM_QUEUE_MOST (4u << 20)
#define STREAM_QUEUE_LIMIT (8u << 20)
/* What waits when nothing is written any more is a block more, or what begins an epoch: less than this by far. */
#define STREAM_QUEUE_HARD (256u << 20)

/* {0} is an empty one. */
struct stream_queue {
    struct buf bytes;
    size_t taken;       /* of `bytes`, from the front */
    uint64_t since_ns;  /* from when on it has not been empty, or was last taken from; while it is empty this says nothing */
    uint64_t busy_ns;   /* how long it was not empty, lately, and what was taken in that time */
    uint64_t busy_bytes;
    size_t limit;       /* instead of STREAM_QUEUE_LIMIT; 0: that */
    enum output_room room;
};

void stream_queue_deinit(struct stream_queue *q);
/* Adds bytes at the end. False: out of memory. */
bool stream_queue_add(struct stream_queue *q, const void *data, size_t len_bytes, uint64_t time_ns);
/* The bytes at the front; with `len_bytes` 0 perhaps NULL. They live until the next call. */
const uint8_t *stream_queue_front(const struct stream_queue *q, size_t *len_bytes);
/* The reader took so many of them, perhaps none. */
void stream_queue_take(struct stream_queue *q, size_t len_bytes, uint64_t time_ns);
/* How much room there is. It comes back when half of what may wait has been taken. */
enum output_room stream_queue_room(struct stream_queue *q, uint64_t time_ns);

#endif
