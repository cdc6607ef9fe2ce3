/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks that wait, as far as samples say. A task has a sample with each stack that its process had not had before, one
 * for some seconds of a wait that lasts, one when the wait is over, and one at the end if it is not. Tasks have names and
 * no numbers, so those of one name that wait in one place are counted.
 */
#include "formats/emit/threads/waiting.h"

#include <string.h>

#include "formats/base/clock.h"

/* A wait that lasts has a sample at least so often; who has had none for longer is gone. */
#define GONE_NS (30 * NS_PER_S)
#define PRUNE_LEAST 4096

/* Without padding. */
struct task_key {
    uint32_t thread, stack, label_set;
};

void waiting_tasks_deinit(struct waiting_tasks *t)
{
    struct limits *limits = t->keys.arena.limits;

    limits_give(limits, t->list.count * sizeof *t->list.data);
    intern_deinit(&t->keys);
    VEC_DEINIT(&t->list);
}

static bool add(struct waiting_tasks *t, struct limits *limits, const struct task_newest *n)
{
    const struct task_key key = {n->thread, n->stack, n->label_set};
    bool added;
    uint32_t at = intern_id(&t->keys, &key, sizeof key, &added);

    if (at == INTERN_NONE || (added && (!limits_take(limits, sizeof *n) || !VEC_PUSH(&t->list, (struct task_newest){0}))))
        return false;
    t->list.data[at] = *n;
    return true;
}

/* Drops what is over, and what has not been seen for long: a service makes tasks for as long as it runs. */
static bool prune(struct waiting_tasks *t, struct limits *limits)
{
    struct waiting_tasks kept = {.keys.arena.limits = limits, .newest_ns = t->newest_ns};

    for (size_t i = 0; i < t->list.count; i++) {
        const struct task_newest *n = &t->list.data[i];
        if (n->lasts && t->newest_ns - n->until_ns < GONE_NS && !add(&kept, limits, n)) {
            waiting_tasks_deinit(&kept);
            return false;
        }
    }
    kept.prune_at = 2 * kept.list.count > PRUNE_LEAST ? 2 * kept.list.count : PRUNE_LEAST;
    waiting_tasks_deinit(t);
    *t = kept;
    return true;
}

bool waiting_tasks_add(struct waiting_tasks *t, struct limits *limits, const struct emit_sample *s)
{
    const struct task_key key = {s->thread, s->stack, s->label_set};
    uint32_t at = intern_find(&t->keys, &key, sizeof key);
    const struct task_newest *before = at == INTERN_NONE ? NULL : &t->list.data[at];
    struct task_newest now = {.until_ns = s->time_ns, .since_ns = s->time_ns - (s->value < s->time_ns ? s->value : s->time_ns),
                              .thread = s->thread, .stack = s->stack, .label_set = s->label_set, .capture = s->capture,
                              .count = 1, .lasts = s->lasts};

    if (before && s->continues)
        now.since_ns = before->since_ns;
    if (before && before->until_ns == s->time_ns && before->lasts && s->lasts) {
        now.count = before->count + 1;
        now.since_ns = before->since_ns < now.since_ns ? before->since_ns : now.since_ns;
    }
    if (s->time_ns > t->newest_ns)
        t->newest_ns = s->time_ns;
    if (!before && t->list.count >= (t->prune_at ? t->prune_at : PRUNE_LEAST) && !prune(t, limits))
        return false;
    return add(t, limits, &now);
}
