/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tasks of a process as text: a tree of who awaits whom, as python -m asyncio pstree shows it. Tasks that wait in the same
 * place for the same, awaited by tasks that are shown together, are one entry.
 *
 *     12 tasks wait
 *
 *       2 tasks: await a task, 0.1 to 2.3 s
 *         Task-19, Task-23
 *           RequestHandler.start (web_protocol.py:686)
 *         2 tasks: ...
 */
#include "formats/emit/threads/task_text.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/numbers.h"
#include "formats/emit/text_write.h"
#include "formats/emit/threads/facts.h"
#include "formats/emit/threads/text_lines.h"

enum { NAMES_SHOWN = 6, INDENT_MOST = 40 };
#define NO_GROUP UINT32_MAX
/* A task that was there at the first look at its process may have waited before. */
#define FIRST_LOOK_NS (500 * NS_PER_MS)

/* Tasks that are shown together. */
struct group {
    uint32_t task;                 /* the first of them: of the list */
    uint32_t parent;               /* NO_GROUP: nobody awaits them, or it is not known who does */
    uint32_t first_child, last_child, next; /* NO_GROUP: none */
    uint64_t count;                /* of tasks */
    uint64_t least_ns, most_ns;    /* that they have waited */
    bool longer;                   /* some of them since before the recording, perhaps */
    uint32_t names;                /* in `text` */
    uint64_t named;                /* tasks that have them */
    struct buf text;               /* the first names */
};

struct groups {
    const struct threads *threads;
    struct intern keys;
    VEC(struct group) list; /* by key */
    uint32_t *group_of;     /* by task of the process */
    uint32_t first, last;   /* of those without a parent */
};

static void groups_deinit(struct groups *g)
{
    for (size_t i = 0; i < g->list.count; i++)
        buf_deinit(&g->list.data[i].text);
    VEC_DEINIT(&g->list);
    intern_deinit(&g->keys);
    free(g->group_of);
}

/* Links a new group behind the children of its parent, or behind those without one. */
static void link_group(struct groups *g, uint32_t number)
{
    struct group *group = &g->list.data[number], *parent = group->parent == NO_GROUP ? NULL : &g->list.data[group->parent];
    uint32_t *first = parent ? &parent->first_child : &g->first, *last = parent ? &parent->last_child : &g->last;

    if (*last == NO_GROUP)
        *first = number;
    else
        g->list.data[*last].next = number;
    *last = number;
}

static void add_task(struct group *group, const struct shown_task *e, const struct emit_capture *capture)
{
    uint64_t ns = e->newest->until_ns - e->newest->since_ns;

    group->count += e->newest->count;
    group->longer |= e->newest->since_ns < capture->start_ns + FIRST_LOOK_NS;
    group->least_ns = ns < group->least_ns ? ns : group->least_ns;
    group->most_ns = ns > group->most_ns ? ns : group->most_ns;
    if (group->names == NAMES_SHOWN)
        return;
    group->named += e->newest->count;
    buf_put_str(&group->text, group->names++ ? ", " : "");
    if (*e->name)
        name_plain(e->name, &group->text);
    else
        buf_put_str(&group->text, "without a name");
    if (e->newest->count > 1)
        buf_printf(&group->text, " (%u)", e->newest->count);
}

static bool find_groups(struct groups *g, const struct threads_process *p)
{
    const struct threads *t = g->threads;
    bool each = t->options.merge == EMIT_MERGE_THREAD || t->options.threads, added;

    for (uint32_t i = 0; i < p->task_count; i++) {
        const struct shown_task *e = &t->list.tasks.data[p->first_task + i];
        uint32_t parent = e->parent == TASKS_NO_PARENT ? NO_GROUP : g->group_of[e->parent - p->first_task];
        const uint32_t key[] = {parent, e->own, e->waits, e->newest->thread, each ? i + 1 : 0};
        uint32_t at = intern_id(&g->keys, key, sizeof key, &added);
        const struct group fresh = {.task = p->first_task + i, .parent = parent, .first_child = NO_GROUP, .last_child = NO_GROUP,
                                    .next = NO_GROUP, .least_ns = UINT64_MAX};
        if (at == INTERN_NONE || (added && !VEC_PUSH(&g->list, fresh)))
            return false;
        if (added)
            link_group(g, at);
        g->group_of[i] = at;
        add_task(&g->list.data[at], e, &t->model->captures[e->newest->capture]);
    }
    return true;
}

/* The frames of the group's tasks alone, outermost first. */
static bool put_frames(const struct groups *g, const struct group *group, unsigned indent, struct buf *out)
{
    const struct emit_model *m = g->threads->model;
    uint32_t outer = group->parent == NO_GROUP ? EMIT_NO_STACK
                                               : g->threads->list.tasks.data[g->list.data[group->parent].task].own;
    uint32_t own = g->threads->list.tasks.data[group->task].own, count = 0;
    VEC(uint32_t) frames = {0};

    for (uint32_t s = own; s != outer && s != EMIT_NO_STACK; s = m->stacks[s].parent) {
        if (!VEC_PUSH(&frames, m->stacks[s].frame)) {
            VEC_DEINIT(&frames);
            return false;
        }
    }
    for (count = (uint32_t)frames.count; count--;)
        threads_put_frame(g->threads, frames.data[count], 1, indent, out);
    VEC_DEINIT(&frames);
    return true;
}

/*
 * Looks find a task at the same place, and do not tell whether it went on meanwhile and came back. A recording that only looked, as
 * that of pycap dump, does not say how long tasks have been there that were there before.
 */
static void put_head(const struct groups *g, const struct group *group, unsigned indent, struct buf *out)
{
    enum emit_wait waits = g->threads->list.tasks.data[group->task].waits;
    bool one = group->count == 1, looked = g->threads->model->thread_state_count;
    struct number n;

    buf_printf(out, "%*s", (int)indent, "");
    if (one)
        buf_put(out, group->text.data, group->text.len_bytes);
    else
        buf_put_str(out, counted(group->count, "task", "tasks", &n));
    buf_printf(out, waits == EMIT_WAIT_TASK         ? ": await%s a task"
                    : waits == EMIT_WAIT_EVENT_LOOP ? ": could go on, but the loop is busy%.0s"
                                                    : ": await%s a future",
               one ? "s" : "");
    if (!group->longer || !looked) {
        buf_put_str(out, ", seen there for ");
        threads_put_between(group->least_ns, group->most_ns, out);
    }
    buf_put_u8(out, '\n');
    if (one)
        return;
    buf_printf(out, "%*s", (int)indent + 2, "");
    buf_put(out, group->text.data, group->text.len_bytes);
    if (group->count > group->named)
        buf_put_str(out, ", \xe2\x80\xa6");
    buf_put_u8(out, '\n');
}

/* The groups below `first` and behind it, each above those that it awaits. */
static bool put_groups(const struct groups *g, struct buf *out)
{
    uint32_t at = g->first, depth = 0;

    while (at != NO_GROUP) {
        const struct group *group = &g->list.data[at];
        unsigned indent = 2 + 2 * depth < INDENT_MOST ? 2 + 2 * depth : INDENT_MOST;
        if (!depth)
            buf_put_u8(out, '\n');
        put_head(g, group, indent, out);
        if (!put_frames(g, group, indent + 4, out))
            return false;
        text_write_piece(out, g->threads->out);
        if (group->first_child != NO_GROUP) {
            at = group->first_child;
            depth++;
            continue;
        }
        while (at != NO_GROUP && g->list.data[at].next == NO_GROUP) {
            at = g->list.data[at].parent;
            depth--;
        }
        at = at == NO_GROUP ? NO_GROUP : g->list.data[at].next;
    }
    return true;
}

bool threads_put_tasks(const struct threads *t, const struct threads_process *p, struct buf *out)
{
    struct groups g = {.threads = t, .keys.arena.limits = t->options.limits, .first = NO_GROUP, .last = NO_GROUP};
    uint64_t count = 0;
    struct number n;

    if (!p->task_count)
        return true;
    g.group_of = calloc(p->task_count, sizeof *g.group_of);
    bool good = g.group_of && find_groups(&g, p);
    for (size_t i = 0; good && i < g.list.count; i++)
        count += g.list.data[i].count;
    if (good) {
        buf_printf(out, "\n  %s that wait%s: who awaits others stands above them, each with its outermost call first\n",
                   counted(count, "task", "tasks", &n), count == 1 ? "s" : "");
        good = put_groups(&g, out);
    }
    groups_deinit(&g);
    return good;
}
