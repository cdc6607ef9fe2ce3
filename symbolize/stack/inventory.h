/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a filter could have chosen among: the distinct values that it met, such as processes, each with the weight of its
 * samples. A message lists the heaviest where a filter lets nothing pass.
 */
#ifndef SYMBOLIZE_STACK_INVENTORY_H
#define SYMBOLIZE_STACK_INVENTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"

#define INVENTORY_NONE UINT32_MAX
enum {
    INVENTORY_VALUES_MAX = 4096, /* kept; a trace may hold any number */
    INVENTORY_LISTED_MAX = 10,
};

struct inventory_weight {
    uint64_t all;    /* of all samples */
    uint64_t chosen; /* of those that the filters before this one let pass */
};
/* Begins as {0}. */
struct inventory {
    struct intern texts;
    VEC(struct inventory_weight) weights; /* by text */
    bool full;                            /* there are more values than are kept */
};

void inventory_deinit(struct inventory *v);
/* The number of a value; INVENTORY_NONE: no room for it. */
uint32_t inventory_value(struct inventory *v, const char *text);
/* Adds a sample. Takes INVENTORY_NONE. */
static inline void inventory_add(struct inventory *v, uint32_t value, uint64_t weight, bool chosen)
{
    if (value == INVENTORY_NONE)
        return;
    v->weights.data[value].all += weight;
    v->weights.data[value].chosen += chosen ? weight : 0;
}
/*
 * Appends the heaviest values, "a, b, c and 5 more". With `chosen` only of samples that the filters before let pass.
 * Returns how many values there are.
 */
uint32_t inventory_put(const struct inventory *v, bool chosen, struct buf *out);

#endif
