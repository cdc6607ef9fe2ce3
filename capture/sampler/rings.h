/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings between the sampler and pycap: one for a few CPUs side by side (bpf/sampler_ring.h). What they bring is handed
 * on ring by ring, so out of order of time, but for messages about waits (message_order.h).
 */
#ifndef CAPTURE_SAMPLER_RINGS_H
#define CAPTURE_SAMPLER_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/sampler/message_order.h"
#include "formats/base/err.h"

struct ring_buffer;
struct ring_reader {
    struct rings *rings;
    struct ring_buffer *buffer;
    int fd;                 /* the map's; owned but for the first one */
    uint64_t drained_bytes; /* during a drain */
};

/* {0} has none. */
struct rings {
    struct ring_reader *all;
    uint32_t count, bytes; /* and the size of each */
    int wake_fd;           /* becomes readable when one fills up */
    struct message_order order;
    uint64_t ordered_ns;   /* up to here messages about waits were handed on by the last drain */
    /* during a drain */
    struct error *(*fn)(void *ctx, const void *message, uint32_t len_bytes);
    void *ctx;
    struct error *err;
};

/* Opens `first_fd`, which is borrowed, and with `outer_fd` not -1 makes the others and puts all of them into that map. */
struct error *rings_open(struct rings *r, int first_fd, int outer_fd, uint32_t count, uint32_t bytes);
void rings_close(struct rings *r);

/* As sampler_drain(). `last`: no message is on its way any more. */
struct error *rings_drain(struct rings *r, bool last, struct error *(*fn)(void *ctx, const void *message, uint32_t len_bytes),
                          void *ctx);

#endif
