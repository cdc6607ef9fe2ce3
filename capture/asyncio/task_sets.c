/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of 3.12 and 3.13, as asyncio.all_tasks() finds them: the module _asyncio has `_scheduled_tasks`, a WeakSet, which
 * keeps a set of weak references, and `_eager_tasks`, a set. Its dict `_current_tasks` says which task a loop runs. An
 * event loop keeps the handle of its thread.
 */
#include "capture/asyncio/task_walk.h"

#define SET_SLOTS_MAX (8u * TASK_READER_TASKS_MAX)
#define LOOPS_MAX 4096
#define LATE_SLOTS 256 /* slots between two looks at the clock */

bool task_set_open(struct task_walk *w, uint64_t set, struct task_set *out)
{
    uint64_t fields[4]; /* fill, used, mask, table (Include/cpython/setobject.h) */

    if (!set || !py_object_bytes(&w->objects, set + w->objects.header, fields, sizeof fields) ||
        fields[2] >= SET_SLOTS_MAX)
        return false;
    *out = (struct task_set){.table = fields[3], .slots = (uint32_t)fields[2] + 1};
    return true;
}

bool task_set_next(struct task_walk *w, struct task_set *s, uint64_t *key)
{
    while (s->at < s->slots) {
        uint64_t slot[2]; /* key, hash */
        if (s->at % LATE_SLOTS == LATE_SLOTS - 1 && w->is_late(w->objects.ctx))
            return false;
        if (!py_object_bytes(&w->objects, s->table + 16 * (uint64_t)s->at, slot, sizeof slot)) {
            s->torn = true;
            return false;
        }
        s->at++;
        *key = slot[0];
        if (slot[0])
            return true;
    }
    return false;
}

/* The thread whose loop `loop` is; NULL: not known, or the time is over. */
static struct task_thread *thread_of(struct task_walk *w, uint64_t loop, uint64_t interpreter)
{
    const struct py_objects *r = &w->objects;
    uint8_t number[64];
    uint64_t handle, object;

    if (w->is_late(r->ctx)) /* a loop's attributes may be many */
        return NULL;
    object = py_attribute(r, loop, "_thread_id", &w->hints->thread_id);
    if (!object || !py_object_bytes(r, object, number, r->header + 20) ||
        !py_int_of(r, number, r->header + 20, &handle) || !handle)
        return NULL;
    for (size_t i = 0; i < w->threads.count; i++) {
        struct task_thread *t = &w->threads.data[i];
        if (t->facts.thread_handle == handle && t->facts.interpreter == interpreter)
            return t;
    }
    return NULL;
}

/* A loop of which tasks were met: tasks of one loop mostly come one after the other. */
struct last_loop {
    uint64_t loop;
    struct task_thread *thread;
};

static bool add(struct task_walk *w, uint64_t task, uint64_t interpreter, struct last_loop *last)
{
    uint64_t loop;

    if (!py_object_u64(&w->objects, task + w->fields.loop, &loop))
        return true;
    if (loop != last->loop || !loop)
        *last = (struct last_loop){loop, thread_of(w, loop, interpreter)};
    return task_walk_add(w, task, last->thread, interpreter);
}

/* Adds the tasks of a set; `weak`: it has weak references to them. False: stop. */
static bool add_set(struct task_walk *w, uint64_t set, bool weak, uint64_t interpreter, struct last_loop *last)
{
    struct task_set s;
    uint64_t object, task;

    if (!task_set_open(w, set, &s)) {
        w->torn = true;
        return true;
    }
    while (task_set_next(w, &s, &object)) {
        task = object;
        /* The weak reference of a task that is gone has None. */
        if (weak && !py_object_u64(&w->objects, object + w->objects.header, &task))
            s.torn = true;
        else if (task_walk_kind_of(w, task) == TASK_KIND_TASK && !add(w, task, interpreter, last))
            return false;
    }
    w->torn = w->torn || s.torn;
    return true;
}

/* What runs in each loop: its thread gets it. */
static void find_running(struct task_walk *w, uint64_t interpreter, uint64_t current)
{
    struct py_dict d;
    uint64_t loop, task;

    if (!current || !py_dict_open(&w->objects, current, &d))
        return;
    for (uint32_t at = 0; at < d.count && at < LOOPS_MAX; at++) {
        struct task_thread *t;
        if (py_dict_entry(&w->objects, &d, at, &loop, &task) && (t = thread_of(w, loop, interpreter)) != NULL)
            t->running_task = task;
    }
}

void task_sets_add(struct task_walk *w, uint64_t interpreter)
{
    const struct py_objects *r = &w->objects;
    struct task_hints *h = w->hints;
    struct last_loop last = {0};
    uint64_t modules, dict;

    if (!py_object_u64(r, interpreter + r->layout->interp_modules, &modules)) {
        w->torn = true;
        return;
    }
    uint64_t module = py_dict_item(r, modules, "_asyncio", 0, &h->module);
    if (!module)
        return;
    if (!py_object_u64(r, module + r->header, &dict)) {
        w->torn = true;
        return;
    }
    find_running(w, interpreter, py_dict_item(r, dict, "_current_tasks", 0, &h->current));
    uint64_t weak = py_dict_item(r, dict, "_scheduled_tasks", 0, &h->scheduled);
    uint64_t data = weak ? py_attribute(r, weak, "data", &h->data) : 0;
    if (data && !add_set(w, data, true, interpreter, &last))
        return;
    uint64_t eager = py_dict_item(r, dict, "_eager_tasks", 0, &h->eager);
    if (eager)
        add_set(w, eager, false, interpreter, &last);
}
