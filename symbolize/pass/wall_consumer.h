/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer that refuses inputs of which --wall cannot make one event (symbolize/trace/wall.h). */
#ifndef SYMBOLIZE_PASS_WALL_CONSUMER_H
#define SYMBOLIZE_PASS_WALL_CONSUMER_H

#include "formats/base/err.h"
#include "formats/base/options.h"
#include "symbolize/pass/consumer.h"

struct wall_state;
extern const struct consumer wall_consumer;

/* `chosen`: the names of --event; borrowed. */
struct error *wall_consumer_create(const struct option_texts *chosen, struct wall_state **out);

#endif
