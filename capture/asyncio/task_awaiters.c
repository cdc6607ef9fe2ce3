/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tasks await which. From 3.14 on a task says by what it is awaited: by one future or task, or by a set of them, as
 * asyncio.graph shows it. A future among them stands for what awaits that. Before, what is known is what each task waits
 * for: another task, or several by asyncio.gather().
 */
#include "capture/asyncio/task_walk.h"

#define FUTURES_MAX 4      /* futures between a task and the one that awaits it */
#define CHILDREN_MAX 65536 /* of a gathering future */
/* Of all tasks together, to what awaits them. Each task's first is read in any case. */
#define EDGES_MIN 10000
#define EDGES_A_TASK 4

static void add_awaiter(struct task_walk *w, struct task *task, uint64_t awaiter)
{
    const uint64_t *index = map_get(&w->tasks, awaiter);

    if (!index || &w->out->tasks.data[*index] == task)
        return;
    task->awaiters++;
    if (*index < task->awaiter)
        task->awaiter = (uint32_t)*index;
}

/* Adds `by`, or what awaits it. */
static void follow(struct task_walk *w, struct task *task, uint64_t by)
{
    const struct task_fields *f = &w->fields;

    for (int i = 0; i < FUTURES_MAX && by; i++) {
        if (map_get(&w->tasks, by)) {
            add_awaiter(w, task, by);
            return;
        }
        enum task_kind kind = task_walk_kind_of(w, by);
        uint8_t is_set;
        if ((kind != TASK_KIND_FUTURE && kind != TASK_KIND_GATHERING) ||
            !py_object_bytes(&w->objects, by + f->awaited_by_is_set, &is_set, 1) || is_set ||
            !py_object_u64(&w->objects, by + f->awaited_by, &by))
            return;
    }
}

static void add_from_set(struct task_walk *w, struct task *task, uint64_t set)
{
    struct task_set s;
    uint64_t key;

    if (!task_set_open(w, set, &s))
        return;
    while (task_set_next(w, &s, &key)) {
        follow(w, task, key);
        if (!w->edges)
            return;
        w->edges--;
    }
}

/*
 * What asyncio.gather() returned waits for its children: a task that awaits it awaits those of them that are tasks. Where
 * tasks say themselves by what they are awaited, the first such child is enough.
 */
static void add_children(struct task_walk *w, struct task *waiting)
{
    const struct py_objects *r = &w->objects;
    uint64_t list = py_attribute(r, waiting->awaits, "_children", &w->hints->children), fields[2], child;

    /* A list: how many items, where they are. */
    if (!list || !py_object_bytes(r, list + r->header, fields, sizeof fields) || fields[0] > CHILDREN_MAX)
        return;
    for (uint64_t i = 0; i < fields[0] && py_object_u64(r, fields[1] + 8 * i, &child); i++) {
        const uint64_t *index = map_get(&w->tasks, child);
        if (!w->edges || (i % 64 == 63 && w->is_late(r->ctx)))
            return;
        w->edges--;
        if (task_walk_kind_of(w, child) != TASK_KIND_TASK)
            continue;
        if (waiting->state == TASK_AWAITS_FUTURE)
            waiting->state = TASK_AWAITS_TASK;
        if (w->fields.awaited_by)
            return;
        if (index)
            add_awaiter(w, &w->out->tasks.data[*index], waiting->address);
    }
}

void task_awaiters_find(struct task_walk *w)
{
    w->edges = EDGES_MIN + EDGES_A_TASK * (uint64_t)w->out->tasks.count;
    for (size_t i = 0; i < w->out->tasks.count; i++) {
        struct task *t = &w->out->tasks.data[i];
        if (task_walk_kind_of(w, t->awaits) == TASK_KIND_GATHERING && !w->is_late(w->objects.ctx))
            add_children(w, t);
        if (w->fields.awaited_by) {
            uint64_t by = w->awaited_by.data[i];
            if (w->awaited_by_is_set.data[i])
                add_from_set(w, t, by);
            else
                follow(w, t, by);
            continue;
        }
        const uint64_t *index = map_get(&w->tasks, t->awaits);
        if (index)
            add_awaiter(w, &w->out->tasks.data[*index], t->address);
    }
}
