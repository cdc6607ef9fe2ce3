/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out whether the samples that pass the filters have different weights. Formats that write samples as they come
 * must know it before the first one, so a pass of its own, which resolves no stacks, runs before theirs.
 */
#ifndef SYMBOLIZE_PASS_WEIGH_H
#define SYMBOLIZE_PASS_WEIGH_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "symbolize/pass/consumer.h"

struct weigh;
extern const struct consumer weigh_consumer;

struct error *weigh_create(struct weigh **out);
/* The pass ends as soon as two samples of one class differ. */
bool weigh_differs(const struct weigh *w);

#endif
