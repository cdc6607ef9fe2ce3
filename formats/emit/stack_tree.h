/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks added up as a tree of names: a node for each call, below its caller. Different stacks with the same names are one.
 * What the numbers are (weights, counts) and what stands at the top (events, processes) is the user's choice.
 */
#ifndef FORMATS_EMIT_STACK_TREE_H
#define FORMATS_EMIT_STACK_TREE_H

#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

struct stack_node {
    uint32_t name;  /* in texts */
    uint32_t frame; /* one of the model's with this name; STACK_TREE_NO_FRAME: the node stands for something else */
    uint32_t first_child, next_sibling;
    uint64_t self;  /* of the stacks that end here */
    uint64_t total; /* of all stacks through here, after stack_tree_sum() */
};
#define STACK_TREE_ROOT 0 /* stands for no node, too: the root is no node's child */
#define STACK_TREE_NO_FRAME UINT32_MAX

struct stack_tree {
    const struct emit_model *model; /* borrowed, like the limits and the texts */
    struct limits *limits;
    const struct intern *texts;
    VEC(struct stack_node) nodes;   /* children have higher numbers than their parents */
    /* private */
    struct map children;            /* parent << 32 | name -> node */
    struct map known;               /* top << 32 | stack -> node, since the last sum */
    VEC(uint32_t) todo;
};

/* The tree has its root then. The caller deinits it, also if this returns false: memory ran out. */
bool stack_tree_init(struct stack_tree *t, const struct emit_model *model, struct limits *limits,
                     const struct intern *texts);
void stack_tree_deinit(struct stack_tree *t);
/* The child of that name, which is added if there is none; STACK_TREE_ROOT: memory ran out. */
uint32_t stack_tree_child(struct stack_tree *t, uint32_t parent, uint32_t name, uint32_t frame);
/*
 * Adds to the number of a stack below the node `top`; the stack may be EMIT_NO_STACK. `names` are the names of frames, as
 * names_spell() makes them, and the same in all calls. False: memory ran out.
 */
bool stack_tree_add(struct stack_tree *t, uint32_t top, uint32_t stack, const uint32_t *names, uint64_t number);
/* Fills in the totals of the nodes from `from` on, which must hold the children of all of these. */
bool stack_tree_sum(struct stack_tree *t, uint32_t from);

/* Children of a node: those that weigh enough, and how many others there are, with their weight. */
struct stack_children {
    VEC(uint32_t) nodes; /* the heaviest first; then by name */
    uint64_t others, others_weight;
};
/* Finds the children whose total is at least `least`; what *out held is replaced. False: memory ran out. */
bool stack_tree_children(const struct stack_tree *t, uint32_t node, uint64_t least, struct stack_children *out);
static inline void stack_children_deinit(struct stack_children *c)
{
    VEC_DEINIT(&c->nodes);
}

#endif
