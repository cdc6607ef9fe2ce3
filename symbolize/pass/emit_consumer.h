/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer that calls an emitter: hands it the resolved samples, in order of time if the emitter wants that. */
#ifndef SYMBOLIZE_PASS_EMIT_CONSUMER_H
#define SYMBOLIZE_PASS_EMIT_CONSUMER_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "formats/emit/emit.h"
#include "symbolize/pass/consumer.h"

struct emit_consumer;
extern const struct consumer emit_consumer;

/*
 * Takes the state of an emitter that has begun, even if it fails; `emitter` is borrowed. With `time_order` samples come in
 * order of time.
 */
struct error *emit_consumer_create(const struct emitter *emitter, void *emitter_state, bool time_order,
                                   struct emit_consumer **state);
/* Number of samples that came too late to be put in order, and got a later time. */
uint64_t emit_consumer_late_count(const struct emit_consumer *c);
/* After the end: a note for the user about the output, or NULL. */
const char *emit_consumer_remark(const struct emit_consumer *c);

#endif
