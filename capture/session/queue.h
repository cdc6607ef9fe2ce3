/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts the messages of the ring (samples, code objects) and the events of the side-band
 * by time. Both are drained one after the other, CPU by CPU, so they arrive out of order.
 * The queue holds them until all that is older must have arrived.
 */
#ifndef CAPTURE_SESSION_QUEUE_H
#define CAPTURE_SESSION_QUEUE_H

#include <stdint.h>

#include "formats/base/err.h"

struct queue;
struct error *queue_create(struct queue **out);
void queue_destroy(struct queue *q);
/* Adds a copy of a message. `kind` is a number of the caller's choice, which queue_run() passes back. */
struct error *queue_add(struct queue *q, uint64_t time_ns, uint32_t kind, const void *data, uint32_t len_bytes);
typedef struct error *(*queue_fn)(void *ctx, uint32_t kind, uint64_t time_ns, const void *data, uint32_t len_bytes);
/*
 * Calls `fn` for all messages up to `until_ns`, in order of time, and of arrival where times are equal; removes them.
 */
struct error *queue_run(struct queue *q, uint64_t until_ns, queue_fn fn, void *ctx);
uint32_t queue_count(const struct queue *q);

#endif
