/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells growth of memory from what comes and goes: a sample of memory that a process was given is kept for WIRE_YOUNG_NS,
 * and handed on when the memory is still there. If a part of it was given back meanwhile, the sample stands for the rest;
 * if all was, the sample is dropped.
 *
 * Everything is to come in order of time.
 */
#ifndef CAPTURE_SESSION_GROWTH_H
#define CAPTURE_SESSION_GROWTH_H

#include <stdint.h>

#include "bpf/wire.h"
#include "formats/base/err.h"

/* Takes a sample, which is the callee's for the time of the call. */
typedef struct error *(*growth_fn)(void *ctx, const struct wire_sample *sample, uint32_t len_bytes);

struct growth;
struct error *growth_create(growth_fn put, void *ctx, struct growth **out);
/* Accepts NULL. */
void growth_destroy(struct growth *g);

/*
 * A process was given memory: a copy of the message is kept. Where too much is kept already, it is handed on at once, and
 * counts as growth.
 */
struct error *growth_add(struct growth *g, const struct wire_sample *sample, uint32_t len_bytes);
/* Memory of a process is gone, or was moved. */
struct error *growth_unmap(struct growth *g, const struct wire_unmap *unmap);
/* Hands on what was given before `time_ns` - WIRE_YOUNG_NS and is still there. */
struct error *growth_settle(struct growth *g, uint64_t time_ns);
/* The process ends, or executes another program; hands on what is still there. UINT32_MAX: all processes. */
struct error *growth_settle_process(struct growth *g, uint32_t tgid);
/* What was dropped: bytes for which the samples stood, and samples. */
uint64_t growth_dropped_bytes(const struct growth *g);
uint64_t growth_dropped(const struct growth *g);
/* What was handed on before it was known whether it would be given back, in bytes for which the samples stood. */
uint64_t growth_unsettled_bytes(const struct growth *g);

#endif
