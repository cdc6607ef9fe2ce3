/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of weights in tables for people: "1.71 s", "  23.4%   1.71 s", and bars. */
#ifndef FORMATS_EMIT_AMOUNTS_H
#define FORMATS_EMIT_AMOUNTS_H

#include "formats/base/buf.h"
#include "formats/emit/emit.h"

enum { AMOUNT_BAR_COLUMNS = 8 };

/* Appends a weight of an event. The weights of a table have one unit, which `all`, the whole, decides. */
void amount_put(const struct emit_event *event, uint64_t weight, uint64_t all, struct buf *out);
/* Appends its share of the whole, and the weight right-aligned in so many columns. */
void amount_put_share(const struct emit_event *event, uint64_t weight, uint64_t all, int columns, struct buf *out);
/* Appends a space and a bar of AMOUNT_BAR_COLUMNS, filled as far as `weight` is of `longest`. */
void amount_put_bar(const struct emit_terminal *terminal, uint64_t weight, uint64_t longest, struct buf *out);

#endif
