/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do the samples that pass the filters weigh differently? Formats that write numbers as samples come have to know it
 * beforehand; a pass of its own finds out, in which no stack is resolved.
 */
#ifndef SYMBOLIZE_PASS_WEIGH_H
#define SYMBOLIZE_PASS_WEIGH_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "symbolize/pass/consumer.h"

struct weigh;
extern const struct consumer weigh_consumer;

struct error *weigh_create(struct weigh **out);
/* As far as the pass went: it ends as soon as two samples of one class do. */
bool weigh_differs(const struct weigh *w);

#endif
