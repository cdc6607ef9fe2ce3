/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/speedscope_sum.h"

#include <stdlib.h>
#include <string.h>

struct error *speedscope_sum_init(struct speedscope_sum *s, const struct speedscope_stacks *stacks)
{
    size_t count = stacks->shown.count;

    *s = (struct speedscope_sum){.stacks = stacks};
    if (!limits_take(stacks->options->limits, count * sizeof *s->node_of))
        return error_no_memory();
    s->node_of = calloc(count, sizeof *s->node_of);
    return s->node_of && VEC_PUSH(&s->nodes, ((struct speedscope_node){0})) ? NULL : error_no_memory();
}

void speedscope_sum_deinit(struct speedscope_sum *s)
{
    if (s->node_of)
        limits_give(s->stacks->options->limits, s->stacks->shown.count * sizeof *s->node_of +
                                                    (s->nodes.count ? s->nodes.count - 1 : 0) * sizeof *s->nodes.data);
    VEC_DEINIT(&s->nodes);
    VEC_DEINIT(&s->order);
    free(s->node_of);
    s->node_of = NULL;
}

void speedscope_sum_clear(struct speedscope_sum *s)
{
    for (size_t i = 0; i < s->nodes.count; i++)
        s->node_of[s->nodes.data[i].stack] = 0;
    limits_give(s->stacks->options->limits, (s->nodes.count - 1) * sizeof *s->nodes.data);
    s->nodes.data[0] = (struct speedscope_node){0};
    s->nodes.count = 1;
    s->order.count = 0;
}

/* Makes nodes for a stack and for those of its callers that have none. 0: out of memory. */
static uint32_t add_nodes(struct speedscope_sum *s, uint32_t stack)
{
    uint32_t first = (uint32_t)s->nodes.count;

    for (uint32_t at = stack, child = 0; at; at = s->stacks->shown.data[at].parent) {
        uint32_t caller = s->stacks->shown.data[at].parent, node = (uint32_t)s->nodes.count;
        if (!limits_take(s->stacks->options->limits, sizeof *s->nodes.data) ||
            !VEC_PUSH(&s->nodes, ((struct speedscope_node){.stack = at, .first_child = child})))
            return 0;
        s->node_of[at] = child = node;
        uint32_t parent = s->node_of[caller];
        if (parent || !caller) {
            s->nodes.data[node].next_sibling = s->nodes.data[parent].first_child;
            s->nodes.data[parent].first_child = node;
            break;
        }
    }
    return first;
}

bool speedscope_sum_add(struct speedscope_sum *s, uint32_t stack, uint64_t weight)
{
    uint32_t node = s->node_of[stack];

    if (!node && !(node = add_nodes(s, stack)))
        return false;
    s->nodes.data[node].self += weight;
    return true;
}

static struct error *add_totals(struct speedscope_sum *s)
{
    for (size_t i = 1; i < s->nodes.count; i++) {
        const struct speedscope_node *node = &s->nodes.data[i];
        if (!node->self)
            continue;
        if (!limits_work(s->stacks->options->limits, 4 * (uint64_t)s->stacks->shown.data[node->stack].depth))
            return error_no_memory();
        for (uint32_t at = node->stack; at; at = s->stacks->shown.data[at].parent)
            s->nodes.data[s->node_of[at]].total += node->self;
    }
    return NULL;
}

/* The lightest first, since the node pushed last is taken first. */
static int compare_totals(const void *a, const void *b, void *arg)
{
    const struct speedscope_sum *s = arg;
    const struct speedscope_node *na = &s->nodes.data[*(const uint32_t *)a], *nb = &s->nodes.data[*(const uint32_t *)b];

    if (na->total != nb->total)
        return na->total < nb->total ? -1 : 1;
    return (na->stack < nb->stack) - (na->stack > nb->stack);
}

struct error *speedscope_sum_sort(struct speedscope_sum *s)
{
    VEC(uint32_t) todo = {0}; /* nodes of which those below come first; when they have, they come again */
    VEC(bool) seen = {0};
    bool ok = VEC_EXTEND_ZERO(&seen, s->nodes.count) && VEC_PUSH(&todo, 0);

    struct error *err = add_totals(s);
    while (ok && !err && todo.count) {
        uint32_t node = todo.data[todo.count - 1];
        size_t from = todo.count;
        if (seen.data[node]) {
            todo.count--;
            ok = !s->nodes.data[node].self || VEC_PUSH(&s->order, node);
            continue;
        }
        seen.data[node] = true;
        for (uint32_t c = s->nodes.data[node].first_child; ok && c; c = s->nodes.data[c].next_sibling)
            ok = VEC_PUSH(&todo, c);
        ok = ok && limits_work(s->stacks->options->limits, 60 * (todo.count - from + 1));
        if (ok && todo.count > from)
            qsort_r(todo.data + from, todo.count - from, sizeof *todo.data, compare_totals, s);
    }
    VEC_DEINIT(&todo);
    VEC_DEINIT(&seen);
    return err ? err : ok ? NULL : error_no_memory();
}
