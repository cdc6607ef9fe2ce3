/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/stack_tree.h"

#include <stdlib.h>
#include <string.h>

bool stack_tree_init(struct stack_tree *t, const struct emit_model *model, struct limits *limits,
                     const struct intern *texts)
{
    *t = (struct stack_tree){.model = model, .limits = limits, .texts = texts, .children.limits = limits,
                             .known.limits = limits};
    return limits_take(limits, sizeof(struct stack_node)) &&
           VEC_PUSH(&t->nodes, ((struct stack_node){.frame = STACK_TREE_NO_FRAME}));
}

void stack_tree_deinit(struct stack_tree *t)
{
    limits_give(t->limits, t->nodes.count * sizeof(struct stack_node));
    VEC_DEINIT(&t->nodes);
    VEC_DEINIT(&t->todo);
    map_deinit(&t->children);
    map_deinit(&t->known);
}

uint32_t stack_tree_child(struct stack_tree *t, uint32_t parent, uint32_t name, uint32_t frame)
{
    uint64_t key = (uint64_t)parent << 32 | name;
    uint64_t *known = map_get(&t->children, key);

    if (known)
        return (uint32_t)*known;
    uint32_t id = (uint32_t)t->nodes.count;
    struct stack_node node = {.name = name, .frame = frame, .next_sibling = t->nodes.data[parent].first_child};
    if (name == INTERN_NONE || t->nodes.count == UINT32_MAX || !map_set(&t->children, key, id) ||
        !limits_take(t->limits, sizeof node))
        return STACK_TREE_ROOT;
    if (!VEC_PUSH(&t->nodes, node)) {
        limits_give(t->limits, sizeof node);
        return STACK_TREE_ROOT;
    }
    t->nodes.data[parent].first_child = id;
    return id;
}

bool stack_tree_add(struct stack_tree *t, uint32_t top, uint32_t stack, const uint32_t *names, uint64_t number)
{
    const struct emit_model *m = t->model;
    uint64_t above = (uint64_t)top << 32;
    uint32_t node = top, at = stack;

    /* Outwards to the first part that the tree has already, then inwards again. */
    t->todo.count = 0;
    for (; at != EMIT_NO_STACK; at = m->stacks[at].parent) {
        uint64_t *known = map_get(&t->known, above | at);
        if (known) {
            node = (uint32_t)*known;
            break;
        }
        if (!limits_work(t->limits, 60) || !VEC_PUSH(&t->todo, at))
            return false;
    }
    while (t->todo.count) {
        at = t->todo.data[--t->todo.count];
        node = stack_tree_child(t, node, names[m->stacks[at].frame], m->stacks[at].frame);
        if (node == STACK_TREE_ROOT || !map_set(&t->known, above | at, node))
            return false;
    }
    if (stack == EMIT_NO_STACK)
        node = stack_tree_child(t, top, names[m->frame_count], STACK_TREE_NO_FRAME);
    if (stack == EMIT_NO_STACK && node == STACK_TREE_ROOT)
        return false;
    t->nodes.data[node].self += number;
    return true;
}

bool stack_tree_sum(struct stack_tree *t, uint32_t from)
{
    size_t count = t->nodes.count - from;

    map_deinit(&t->known); /* the next stacks stand below another node */
    if (!limits_work(t->limits, 4 * count))
        return false;
    for (size_t i = t->nodes.count; i-- > from;) {
        struct stack_node *node = &t->nodes.data[i];
        node->total = node->self;
        for (uint32_t c = node->first_child; c != STACK_TREE_ROOT; c = t->nodes.data[c].next_sibling)
            node->total += t->nodes.data[c].total;
    }
    return true;
}

static int compare_children(const void *a, const void *b, void *arg)
{
    const struct stack_tree *t = arg;
    const struct stack_node *na = &t->nodes.data[*(const uint32_t *)a], *nb = &t->nodes.data[*(const uint32_t *)b];

    if (na->total != nb->total)
        return na->total > nb->total ? -1 : 1;
    const struct intern_entry *ta = intern_get(t->texts, na->name), *tb = intern_get(t->texts, nb->name);
    int order = memcmp(ta->data, tb->data, ta->len_bytes < tb->len_bytes ? ta->len_bytes : tb->len_bytes);
    return order ? order : (ta->len_bytes > tb->len_bytes) - (ta->len_bytes < tb->len_bytes);
}

bool stack_tree_children(const struct stack_tree *t, uint32_t node, uint64_t least, struct stack_children *out)
{
    uint64_t work = 0;

    out->nodes.count = 0;
    out->others = out->others_weight = 0;
    for (uint32_t c = t->nodes.data[node].first_child; c != STACK_TREE_ROOT; c = t->nodes.data[c].next_sibling) {
        const struct stack_node *child = &t->nodes.data[c];
        if (child->total >= least) {
            /* Long names that begin alike are compared to their ends, a few times each. */
            work += 100 + intern_get(t->texts, child->name)->len_bytes;
            if (!VEC_PUSH(&out->nodes, c))
                return false;
        } else {
            work += 4;
            out->others++;
            out->others_weight += child->total;
        }
    }
    if (!limits_work(t->limits, work))
        return false;
    if (out->nodes.count)
        qsort_r(out->nodes.data, out->nodes.count, sizeof *out->nodes.data, compare_children, (void *)t);
    return true;
}
