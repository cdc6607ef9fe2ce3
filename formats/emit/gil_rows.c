/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the tables of functions: samples by the innermost Python function of their stacks, and by their state. */
#include <stdlib.h>
#include <string.h>

#include "formats/base/square_root.h"
#include "formats/emit/gil.h"

/* What the samples of a row have in common; without padding. */
struct row_key {
    uint32_t function, state, native;
};
#define ANY UINT32_MAX

uint64_t gil_error_ns(const struct gil_sum *sum)
{
    return square_root(sum->variance);
}

uint64_t gil_duration_ns(const struct gil_view *v)
{
    uint64_t duration_ns = 0;

    for (uint32_t i = 0; i < v->model->capture_count && !v->options.times_chosen && !v->options.part; i++)
        duration_ns += v->model->captures[i].duration_ns;
    return duration_ns;
}

/* ---- frames ---- */

/* The innermost Python frame's stack; EMIT_NO_STACK: it has none. */
static uint32_t python_of(const struct emit_model *m, uint32_t stack)
{
    while (stack != EMIT_NO_STACK && m->frames[m->stacks[stack].frame].kind != EMIT_PYTHON)
        stack = m->stacks[stack].parent;
    return stack;
}

/* The innermost frame's stack of user space, behind the kernel's and marks; EMIT_NO_STACK: there is none. */
static uint32_t user_of(const struct emit_model *m, uint32_t stack)
{
    for (; stack != EMIT_NO_STACK; stack = m->stacks[stack].parent) {
        enum emit_frame_kind kind = m->frames[m->stacks[stack].frame].kind;
        if (kind == EMIT_PYTHON || kind == EMIT_NATIVE)
            break;
    }
    return stack;
}

/* The name of the frame that a stack ends with. */
static uint32_t name_of(const struct gil_view *v, uint32_t stack)
{
    return v->ids[stack == EMIT_NO_STACK ? v->model->frame_count : v->model->stacks[stack].frame];
}

/* The function that a row is called by: Python's, or without Python what ran in user space, or anything. */
static uint32_t function_of(const struct gil_view *v, uint32_t stack)
{
    uint32_t python = python_of(v->model, stack), user = user_of(v->model, stack);

    return name_of(v, python != EMIT_NO_STACK ? python : user != EMIT_NO_STACK ? user : stack);
}

bool gil_frames_of(const struct gil_view *v, const struct gil_row *row, struct gil_frames *out)
{
    const struct emit_model *m = v->model;
    uint32_t python = python_of(m, row->stack);

    out->native.count = out->callers.count = 0;
    for (uint32_t s = row->stack; s != EMIT_NO_STACK; s = m->stacks[s].parent) {
        uint32_t frame = m->stacks[s].frame;
        enum emit_frame_kind kind = m->frames[frame].kind;
        bool outward = python == EMIT_NO_STACK || m->stacks[s].depth < m->stacks[python].depth;
        size_t count = out->native.count;
        bool again = count && v->ids[out->native.data[count - 1]] == v->ids[frame];
        if (!outward && kind == EMIT_NATIVE && !again && !VEC_PUSH(&out->native, frame))
            return false;
        if (outward && kind == EMIT_PYTHON && !VEC_PUSH(&out->callers, frame))
            return false;
    }
    for (size_t i = 0, k = out->native.count; i + 1 < k; i++) {
        uint32_t frame = out->native.data[i];
        out->native.data[i] = out->native.data[--k];
        out->native.data[k] = frame;
    }
    return true;
}

void gil_frames_deinit(struct gil_frames *f)
{
    VEC_DEINIT(&f->native);
    VEC_DEINIT(&f->callers);
}

/* ---- rows ---- */

/* Off the CPU because of what the thread itself did, not because another one had the CPU. */
static bool is_call(enum emit_wait wait)
{
    return wait != EMIT_WAIT_NONE && wait != EMIT_WAIT_RUN_QUEUE && wait != EMIT_WAIT_PREEMPTED;
}

/* Whether samples belong to a table; *blamed: only as what others lost. */
static bool belongs(const struct gil_view *v, const struct gil_entry *e, enum gil_table table, bool *blamed)
{
    *blamed = table == GIL_CALLS && e->what == GIL_BLAMED;
    switch (table) {
    case GIL_HOLDERS:
        return e->what == (v->has_blame ? GIL_BLAMED : GIL_RAN);
    case GIL_CALLS:
        return (e->what == GIL_OFF || *blamed) && is_call(v->states.data[e->state].wait);
    default:
        return e->what == GIL_WAITED || e->what == GIL_LOCKED;
    }
}

static struct row_key key_of(const struct gil_view *v, const struct gil_entry *e, enum gil_table table)
{
    struct row_key key = {.function = function_of(v, e->stack), .state = e->state, .native = ANY};

    if (table == GIL_CALLS)
        key.native = name_of(v, user_of(v->model, e->stack));
    else if (table == GIL_WAITERS) /* in whichever system call */
        key.state = v->states.data[e->state].wait;
    return key;
}

/* Adds samples to their row. */
static bool add_entry(const struct gil_view *v, struct gil_group *g, const struct gil_entry *e, enum gil_table table,
                      struct intern *keys)
{
    bool blamed, added;

    if (!belongs(v, e, table, &blamed))
        return true;
    uint64_t depth = e->stack == EMIT_NO_STACK ? 0 : v->model->stacks[e->stack].depth;
    if (!limits_work(v->options.limits, 100 + 8 * depth))
        return false;
    struct row_key key = key_of(v, e, table);
    uint32_t at = intern_id(keys, &key, sizeof key, &added);
    struct gil_row new_row = {.function = key.function, .state = e->state, .stack = e->stack};
    if (at == INTERN_NONE || (added && !VEC_PUSH(&g->rows, new_row)))
        return false;
    struct gil_row *row = &g->rows.data[at];
    if (blamed) {
        row->blamed_ns += e->sum.ns;
        return true;
    }
    row->sum.samples += e->sum.samples;
    row->sum.ns += e->sum.ns;
    row->sum.variance += e->sum.variance;
    if (e->sum.ns > row->stack_ns) {
        row->stack = e->stack;
        row->stack_ns = e->sum.ns;
    }
    return true;
}

static int compare_rows(const void *a, const void *b)
{
    const struct gil_row *x = a, *y = b;

    if (x->sum.ns != y->sum.ns)
        return x->sum.ns > y->sum.ns ? -1 : 1;
    return x->stack != y->stack ? (x->stack > y->stack) - (x->stack < y->stack) : (x->state > y->state) - (x->state < y->state);
}

struct error *gil_fill_table(const struct gil_view *v, struct gil_group *g, enum gil_table table)
{
    struct intern keys = {.arena.limits = v->options.limits};
    size_t left = 0;
    bool ok = true;

    g->rows.count = 0;
    g->all = (struct gil_sum){0};
    for (size_t i = 0; ok && i < g->entry_count; i++)
        ok = add_entry(v, g, &g->entries[i], table, &keys);
    intern_deinit(&keys);
    if (!ok)
        return error_no_memory();
    for (size_t i = 0; i < g->rows.count; i++) {
        g->all.samples += g->rows.data[i].sum.samples;
        g->all.ns += g->rows.data[i].sum.ns;
        g->all.variance += g->rows.data[i].sum.variance;
    }
    for (size_t i = 0; i < g->rows.count; i++) {
        const struct gil_row *row = &g->rows.data[i];
        if (row->sum.ns && (double)row->sum.ns >= v->options.min_share * (double)g->all.ns)
            g->rows.data[left++] = *row;
    }
    g->rows.count = left;
    gil_sort(g->rows.data, left, sizeof *g->rows.data, compare_rows);
    return NULL;
}
