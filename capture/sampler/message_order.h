/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings the sampler's messages about waits into the order of time, where several rings bring them: a thread leaves its CPU
 * on one and comes back on another, and what the rings hold is read one ring after the other.
 *
 * A message has been sent before the thread that it is about is switched to anywhere else. So when all rings are read once,
 * whatever a thread sent by the time at which that began has been read, but for its last message, which may be on its way.
 */
#ifndef CAPTURE_SAMPLER_MESSAGE_ORDER_H
#define CAPTURE_SAMPLER_MESSAGE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

struct ordered_message {
    uint64_t time_ns;
    uint64_t at; /* in the bytes; also tells the order of arrival */
    uint32_t len_bytes;
    bool ends;   /* it is the last one of its thread: behind others of the same time */
};

/* {0} is empty. */
struct message_order {
    VEC(struct ordered_message) messages;
    VEC(uint8_t) bytes;
};
void message_order_deinit(struct message_order *o);

/* Whether a message of the sampler is one whose order matters. */
bool message_order_needs(const void *message, uint32_t len_bytes);
/* Keeps a copy of such a message. */
struct error *message_order_add(struct message_order *o, const void *message, uint32_t len_bytes);
/* Calls `fn` for all messages up to `until_ns`, in order of time, and of arrival where times are equal; removes them. */
struct error *message_order_run(struct message_order *o, uint64_t until_ns,
                                struct error *(*fn)(void *ctx, const void *message, uint32_t len_bytes), void *ctx);

#endif
