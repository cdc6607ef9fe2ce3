/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through the nodes of the set, parents first, once for each side. */
#include "formats/compare/call_tree.h"

static struct error *add_node(struct call_tree *t, struct map *known, enum side side, uint32_t node, uint32_t parent,
                              uint32_t subject)
{
    uint64_t key = (uint64_t)parent << 32 | subject, *found = map_get(known, key);
    uint32_t number = found ? (uint32_t)*found : (uint32_t)t->nodes.count;

    if (!found && (!limits_take(known->limits, sizeof(struct call_node)) || !map_set(known, key, number) ||
                   !VEC_PUSH(&t->nodes, ((struct call_node){parent, subject, {RUN_SET_NONE, RUN_SET_NONE}}))))
        return error_no_memory();
    t->of_node[side][node] = number;
    t->nodes.data[number].node[side] = node;
    return NULL;
}

static struct error *add_side(struct call_tree *t, struct map *known, const struct run_set *set, const struct match *match,
                              enum side side)
{
    if (!limits_work(set->limits, 40 * (uint64_t)set->nodes.count))
        return error_no_memory();
    t->of_node[side][RUN_SET_ROOT] = CALL_NODE_ROOT;
    for (uint32_t i = RUN_SET_ROOT + 1; i < set->nodes.count; i++) {
        const struct run_node *n = &set->nodes.data[i];
        uint32_t parent = n->parent < i ? t->of_node[side][n->parent] : CALL_NODE_NONE;
        uint32_t subject = n->function < set->functions.count ? match->of_function[side][n->function] : RUN_SET_NONE;
        t->of_node[side][i] = CALL_NODE_NONE;
        if (parent != CALL_NODE_NONE && subject != RUN_SET_NONE)
            TRY(add_node(t, known, side, i, parent, subject));
    }
    return NULL;
}

struct error *call_tree_init(struct call_tree *t, const struct run_set *set, const struct match *match)
{
    struct map known = {.limits = set->limits};
    struct error *err = NULL;

    *t = (struct call_tree){0};
    if (!VEC_PUSH(&t->nodes, ((struct call_node){CALL_NODE_NONE, RUN_SET_NONE, {RUN_SET_ROOT, RUN_SET_ROOT}})))
        return error_no_memory();
    for (enum side side = 0; side < SIDE_COUNT && !err; side++) {
        t->of_node[side] = malloc((set->nodes.count + 1) * sizeof *t->of_node[side]);
        err = t->of_node[side] ? add_side(t, &known, set, match, side) : error_no_memory();
    }
    map_deinit(&known);
    return err;
}

void call_tree_deinit(struct call_tree *t)
{
    VEC_DEINIT(&t->nodes);
    for (enum side side = 0; side < SIDE_COUNT; side++)
        free(t->of_node[side]);
    *t = (struct call_tree){0};
}
