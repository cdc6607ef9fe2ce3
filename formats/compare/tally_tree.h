/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up the values of a block of samples from the leaves of a tree to its root. The work is one step for each node that
 * the block has seen, however many of its stacks lead there.
 */
#ifndef FORMATS_COMPARE_TALLY_TREE_H
#define FORMATS_COMPARE_TALLY_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/limits.h"
#include "formats/base/vec.h"

struct tally_step {
    double now; /* of the block; with that of all below it after tally_tree_add_up() */
    uint32_t parent;
    bool seen;
};

struct tally_tree {
    struct limits *limits; /* borrowed; NULL: none */
    VEC(struct tally_step) steps; /* parents come before children; [0] is the root, its own parent */
    VEC(uint32_t) seen;           /* steps of the block */
    VEC(uint32_t) chains;         /* where in `seen` each run from a leaf to a step seen before begins */
};

void tally_tree_deinit(struct tally_tree *t);
/* Adds the next step. False: out of memory or over the limits, as below. */
bool tally_tree_push(struct tally_tree *t, uint32_t parent);
bool tally_tree_add(struct tally_tree *t, uint32_t step, double value);
/* Call once a block, after its last value. */
void tally_tree_add_up(struct tally_tree *t);
/* Begins the next block. */
void tally_tree_clear(struct tally_tree *t);

#endif
