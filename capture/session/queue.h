/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts what comes from the ring (samples, code objects) and from the side-band into
 * one order of time. Both are drained one after the other, CPU by CPU; an event is
 * let through when everything older than it must have arrived.
 */
#ifndef CAPTURE_SESSION_QUEUE_H
#define CAPTURE_SESSION_QUEUE_H

#include <stdint.h>

#include "formats/base/err.h"

struct queue;
struct error *queue_create(struct queue **out);
void queue_destroy(struct queue *q);
/* Copies a message; `kind` is the caller's. */
struct error *queue_add(struct queue *q, uint64_t time_ns, uint32_t kind, const void *data, uint32_t len_bytes);
typedef struct error *(*queue_fn)(void *ctx, uint32_t kind, uint64_t time_ns, const void *data, uint32_t len_bytes);
/* Hands over, in order of time (and of arrival where times are equal), all that is not newer than `until_ns`. */
struct error *queue_run(struct queue *q, uint64_t until_ns, queue_fn fn, void *ctx);
uint32_t queue_count(const struct queue *q);

#endif
