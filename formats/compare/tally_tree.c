/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/compare/tally_tree.h"

void tally_tree_deinit(struct tally_tree *t)
{
    VEC_DEINIT(&t->steps);
    VEC_DEINIT(&t->seen);
    VEC_DEINIT(&t->chains);
}

bool tally_tree_push(struct tally_tree *t, uint32_t parent)
{
    return limits_take(t->limits, sizeof *t->steps.data) && VEC_PUSH(&t->steps, ((struct tally_step){.parent = parent}));
}

bool tally_tree_add(struct tally_tree *t, uint32_t step, double value)
{
    struct tally_step *steps = t->steps.data;
    size_t first = t->seen.count;

    steps[step].now += value;
    for (uint32_t s = step; !steps[s].seen; s = steps[s].parent) {
        steps[s].seen = true;
        if (!VEC_PUSH(&t->seen, s))
            return false;
    }
    if (t->seen.count == first)
        return true;
    return limits_work(t->limits, 10 * (t->seen.count - first)) && VEC_PUSH(&t->chains, (uint32_t)first);
}

/*
 * A chain hangs on one that was seen before it, so the last one comes first; within a chain the innermost step does. Then
 * every step is complete when it is added to its parent.
 */
void tally_tree_add_up(struct tally_tree *t)
{
    struct tally_step *steps = t->steps.data;
    size_t end = t->seen.count;

    for (size_t chain = t->chains.count; chain--; end = t->chains.data[chain]) {
        for (size_t i = t->chains.data[chain]; i < end; i++) {
            uint32_t step = t->seen.data[i];
            if (step)
                steps[steps[step].parent].now += steps[step].now;
        }
    }
}

void tally_tree_clear(struct tally_tree *t)
{
    for (size_t i = 0; i < t->seen.count; i++) {
        t->steps.data[t->seen.data[i]].now = 0;
        t->steps.data[t->seen.data[i]].seen = false;
    }
    t->seen.count = t->chains.count = 0;
}
