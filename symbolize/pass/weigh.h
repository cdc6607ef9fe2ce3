/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether the samples that pass the filters have different weights. Formats that write samples as they come
 * must know it before the first one, so a pass of its own, which resolves no stacks, runs before theirs.
 */
#ifndef SYMBOLIZE_PASS_WEIGH_H
#define SYMBOLIZE_PASS_WEIGH_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "symbolize/pass/consumer.h"

struct weigh;
extern const struct consumer weigh_consumer;

/* What the parts of an output have to agree on. */
struct weigh_result {
    struct intern differ; /* events whose samples differ: by name, or "" for all events of time. {0} before the pass */
    bool several_events;
};

/* The pass ends as soon as two samples of one class differ. If `weighed` is given it does not, and fills it in at its end. */
struct error *weigh_create(struct weigh_result *weighed, struct weigh **out);
bool weigh_differs(const struct weigh *w);

#endif
