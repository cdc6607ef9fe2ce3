/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trees of calls of both sets as one: the same functions (match.h) below the same callers are one node.
 */
#ifndef FORMATS_COMPARE_CALL_TREE_H
#define FORMATS_COMPARE_CALL_TREE_H

#include "formats/compare/match.h"

struct call_node {
    uint32_t parent, subject;  /* of the root: CALL_NODE_NONE, RUN_SET_NONE. Parents come before children */
    uint32_t node[SIDE_COUNT]; /* of the set; RUN_SET_NONE: that side has none */
};
#define CALL_NODE_NONE UINT32_MAX
#define CALL_NODE_ROOT 0

struct call_tree {
    VEC(struct call_node) nodes;
    uint32_t *of_node[SIDE_COUNT]; /* by node of the set; CALL_NODE_NONE: a function on its path has no time on that side */
};

/* The caller deinits `t`, also after an error. */
struct error *call_tree_init(struct call_tree *t, const struct run_set *set, const struct match *match);
void call_tree_deinit(struct call_tree *t);

#endif
