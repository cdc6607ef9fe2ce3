/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks that wait at the end, and who awaits whom. The stack of a task has those of the tasks that await it outside of
 * its own, so the one that awaits it is the task of that name whose stack is the outer part of its own.
 */
#include "formats/emit/threads/task_list.h"

#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/sort.h"
#include "formats/emit/threads/facts.h"

/* Of entries of the list, by what they are found by. */
struct places {
    struct intern keys;
    VEC(uint32_t) of_key;
};

static int by_depth(const void *a, const void *b)
{
    const struct shown_task *x = a, *y = b;

    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool add_tasks(struct threads *t)
{
    const struct emit_model *m = t->model;

    for (size_t i = 0; i < t->tasks.list.count; i++) {
        const struct task_newest *n = &t->tasks.list.data[i];
        const struct emit_label_set *set = &m->label_sets[n->label_set];
        const char *name = threads_label(set, "asyncio task"), *awaiter = threads_label(set, "awaited by");
        uint32_t own = threads_own_stack(m, n->stack), process = m->threads[n->thread].process;
        struct shown_task e = {.newest = n, .name = name ? name : "", .awaiter = awaiter ? awaiter : "", .waits = set->wait,
                               .own = own, .depth = own == EMIT_NO_STACK ? 0 : m->stacks[own].depth,
                               .parent = TASKS_NO_PARENT, .process = process, .pid = m->processes[process].pid};
        if (n->lasts && !m->processes[process].ended && !VEC_PUSH(&t->list.tasks, e))
            return false;
    }
    return sort_stable(t->list.tasks.data, t->list.tasks.count, sizeof *t->list.tasks.data, by_depth);
}

/* The length of the first name in "main and 2 more". */
static size_t awaiter_len(const char *awaiter)
{
    static const char and_[] = " and ", more[] = " more";
    size_t len = strlen(awaiter), digits;

    if (len < sizeof more || strcmp(awaiter + len - strlen(more), more))
        return len;
    for (digits = len - strlen(more); digits && awaiter[digits - 1] >= '0' && awaiter[digits - 1] <= '9';)
        digits--;
    size_t and_len = strlen(and_);
    return digits > and_len && digits < len - strlen(more) && !memcmp(awaiter + digits - and_len, and_, and_len) ? digits - and_len : len;
}

/* A stack and a name as bytes. */
static void put_key(struct buf *out, uint32_t process, uint32_t stack, const char *name, size_t len_bytes)
{
    buf_clear(out);
    buf_put_u32(out, process);
    buf_put_u32(out, stack);
    buf_put(out, name, len_bytes);
}

/* The task that awaits this one: of those already in `seen` the one of that name with the longest stack that is part of its own. */
static bool find_parent(struct threads *t, const struct places *seen, struct shown_task *e, struct buf *key)
{
    const struct emit_model *m = t->model;
    size_t len = awaiter_len(e->awaiter);
    uint32_t stack = e->own == EMIT_NO_STACK ? EMIT_NO_STACK : m->stacks[e->own].parent;

    for (; *e->awaiter && stack != EMIT_NO_STACK && e->parent == TASKS_NO_PARENT; stack = m->stacks[stack].parent) {
        put_key(key, e->process, stack, e->awaiter, len);
        if (key->bad || !limits_work(t->options.limits, 50 + len))
            return false;
        uint32_t at = intern_find(&seen->keys, key->data, (uint32_t)key->len_bytes);
        e->parent = at == INTERN_NONE ? TASKS_NO_PARENT : seen->of_key.data[at];
    }
    return true;
}

static bool find_parents(struct threads *t)
{
    struct places seen = {.keys.arena.limits = t->options.limits};
    struct buf key = {0};
    bool good = true, added;

    for (size_t i = 0; good && i < t->list.tasks.count; i++) {
        struct shown_task *e = &t->list.tasks.data[i];
        good = find_parent(t, &seen, e, &key);
        put_key(&key, e->process, e->own, e->name, strlen(e->name));
        uint32_t at = good && !key.bad ? intern_id(&seen.keys, key.data, (uint32_t)key.len_bytes, &added) : INTERN_NONE;
        good = at != INTERN_NONE && (!added || VEC_PUSH(&seen.of_key, (uint32_t)i));
    }
    VEC_DEINIT(&seen.of_key);
    intern_deinit(&seen.keys);
    buf_deinit(&key);
    return good;
}

/* Finds where the tasks of each process begin. Tasks of a process without a thread that is shown are left out. */
static void find_places(struct threads_list *l)
{
    for (size_t i = 0, at = 0; i < l->processes.count; i++) {
        struct threads_process *p = &l->processes.data[i];
        while (at < l->tasks.count && (l->tasks.data[at].pid < p->pid ||
                                       (l->tasks.data[at].pid == p->pid && l->tasks.data[at].process < p->process)))
            at++;
        p->first_task = (uint32_t)at;
        while (at < l->tasks.count && l->tasks.data[at].process == p->process)
            at++;
        p->task_count = (uint32_t)at - p->first_task;
    }
}

struct error *threads_list_tasks(struct threads *t)
{
    if (!add_tasks(t) || !find_parents(t))
        return error_no_memory();
    find_places(&t->list);
    return NULL;
}
