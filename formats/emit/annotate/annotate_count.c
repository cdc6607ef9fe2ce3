/* SPDX-License-Identifier: Apache-2.0 */
/* Adds samples up, by line and by section, once for each distinct stack. */
#include <stdlib.h>
#include <string.h>

#include "formats/emit/annotate/annotate.h"
#include "formats/emit/top_states.h"

enum { FRAME_WORK = 12 };

struct counting {
    struct annotate_view *view;
    uint64_t *line_serials, *section_serials; /* the stack that was counted last */
    uint64_t serial;
};

static uint64_t *column(struct annotate_weights *w, enum emit_frame_kind kind)
{
    return kind == EMIT_KERNEL ? &w->kernel : kind == EMIT_NATIVE ? &w->native : &w->self;
}

/* The innermost line of a kind of frame owns the time; `kind` is that of the frame that ran. */
static void add_own(struct counting *c, uint32_t stack, enum emit_frame_kind owner, enum emit_frame_kind kind, uint64_t weight)
{
    const struct emit_model *m = c->view->model;

    while (stack != EMIT_NO_STACK && m->frames[m->stacks[stack].frame].kind != owner) {
        if (owner == EMIT_NATIVE && m->frames[m->stacks[stack].frame].kind == EMIT_PYTHON)
            return; /* the kernel was called by Python, as far as is known */
        stack = m->stacks[stack].parent;
    }
    uint32_t line = stack == EMIT_NO_STACK ? ANNOTATE_NOWHERE : c->view->line_of_frame[m->stacks[stack].frame];
    if (line == ANNOTATE_NOWHERE)
        return;
    struct annotate_line *l = &c->view->lines.data[line];
    kind = kind == owner || kind == EMIT_MARK ? EMIT_PYTHON : kind;
    *column(&l->weights, kind) += weight;
    *column(&c->view->sections.data[l->section].weights, kind) += weight;
}

static void add_stack(struct counting *c, uint32_t stack, uint64_t weight)
{
    const struct emit_model *m = c->view->model;
    uint32_t own = top_states_own(m, stack);

    if (own != EMIT_NO_STACK) {
        enum emit_frame_kind kind = m->frames[m->stacks[own].frame].kind;
        add_own(c, own, EMIT_PYTHON, kind, weight);
        if (kind != EMIT_PYTHON)
            add_own(c, own, EMIT_NATIVE, kind, weight);
    }
    c->serial++;
    for (; stack != EMIT_NO_STACK; stack = m->stacks[stack].parent) {
        uint32_t line = c->view->line_of_frame[m->stacks[stack].frame];
        if (line == ANNOTATE_NOWHERE || c->line_serials[line] == c->serial)
            continue;
        struct annotate_line *l = &c->view->lines.data[line];
        c->line_serials[line] = c->serial;
        l->weights.total += weight;
        if (c->section_serials[l->section] != c->serial)
            c->view->sections.data[l->section].weights.total += weight;
        c->section_serials[l->section] = c->serial;
    }
}

struct error *annotate_count(struct annotate_view *v, uint32_t event, struct count *all)
{
    const struct map *counts = &v->counts.events.data[event];
    struct counting c = {.view = v,
                         .line_serials = calloc(v->lines.count + 1, sizeof(uint64_t)),
                         .section_serials = calloc(v->sections.count + 1, sizeof(uint64_t))};
    bool ok = c.line_serials && c.section_serials;

    *all = (struct count){0};
    for (size_t i = 0; i < v->lines.count; i++)
        v->lines.data[i].weights = (struct annotate_weights){0};
    for (size_t i = 0; i < v->sections.count; i++)
        v->sections.data[i].weights = (struct annotate_weights){0};
    for (uint64_t i = 0; ok && i < counts->slot_count; i++) {
        const struct map_slot *slot = &counts->slots[i];
        if (!slot->used)
            continue;
        const struct count *count = counts_get(&v->counts, slot);
        uint32_t stack = (uint32_t)slot->key;
        all->samples += count->samples;
        all->weight += count->weight;
        if (stack == EMIT_NO_STACK)
            continue;
        ok = limits_work(v->options.limits, 10 + FRAME_WORK * (uint64_t)v->model->stacks[stack].depth);
        if (ok)
            add_stack(&c, stack, count->weight);
    }
    free(c.line_serials);
    free(c.section_serials);
    return ok ? NULL : error_no_memory();
}
