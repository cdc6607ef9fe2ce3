/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of several threads as one profile: weights added up by stack, in the order of a flame graph. Such samples
 * have no common order of time, since threads run side by side. In this order speedscope's "Time Order" shows what its
 * "Left Heavy" does: of the callees of a function the heaviest first, and last the function's own weight.
 */
#ifndef FORMATS_EMIT_SPEEDSCOPE_SUM_H
#define FORMATS_EMIT_SPEEDSCOPE_SUM_H

#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "formats/emit/speedscope_stacks.h"

/* A stack that has a weight, or the callers of one. Index 0 is the empty stack, which is nobody's child. */
struct speedscope_node {
    uint32_t stack; /* its number in speedscope_stacks */
    uint32_t first_child, next_sibling;
    uint64_t self, total; /* weight of the stack alone, and with all below it */
};

struct speedscope_sum {
    const struct speedscope_stacks *stacks; /* borrowed */
    VEC(struct speedscope_node) nodes;
    uint32_t *node_of;   /* by stack; 0: it has none */
    VEC(uint32_t) order; /* nodes with a weight, in the order of the profile */
};

/* `stacks` are numbered already. {0} is a sum that may be deinited. */
struct error *speedscope_sum_init(struct speedscope_sum *s, const struct speedscope_stacks *stacks);
void speedscope_sum_deinit(struct speedscope_sum *s);
/* Makes the sum empty again. */
void speedscope_sum_clear(struct speedscope_sum *s);
/* Adds weight to a stack, by its number. False: out of memory. */
bool speedscope_sum_add(struct speedscope_sum *s, uint32_t stack, uint64_t weight);
/* Fills `order`, after all was added. */
struct error *speedscope_sum_sort(struct speedscope_sum *s);

#endif
