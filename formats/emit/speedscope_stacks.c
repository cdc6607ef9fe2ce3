/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/speedscope_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "formats/emit/json.h"
#include "formats/emit/names.h"

void speedscope_stacks_init(struct speedscope_stacks *s, const struct emit_model *model,
                            const struct emit_options *options)
{
    *s = (struct speedscope_stacks){.model = model,
                                    .options = options,
                                    .frames.arena.limits = options->limits,
                                    .children.limits = options->limits};
}

void speedscope_stacks_deinit(struct speedscope_stacks *s)
{
    if (s->options)
        limits_give(s->options->limits, s->used.count * sizeof *s->used.data);
    VEC_DEINIT(&s->used);
    VEC_DEINIT(&s->shown);
    map_deinit(&s->children);
    intern_deinit(&s->frames);
    free(s->frame_of);
    free(s->shown_of);
}

bool speedscope_stacks_use(struct speedscope_stacks *s, uint32_t stack)
{
    if (stack == EMIT_NO_STACK) {
        s->has_empty = true;
        return true;
    }
    size_t count = s->used.count, more = stack < count ? 0 : stack + 1 - count;
    if (!limits_take(s->options->limits, more * sizeof *s->used.data) || !VEC_EXTEND_ZERO(&s->used, count + more))
        return false;
    s->used.data[stack] = true;
    return true;
}

static bool set_text(json_t *object, const char *key, const void *text, size_t len)
{
    return !json_object_set_new(object, key, json_stringn(text, len));
}

/* One frame as JSON; NULL is the frame of samples without frames. The name is clean already, the file is not. */
static struct error *put_frame(const struct speedscope_stacks *s, const struct emit_frame *f,
                               const struct intern_entry *name, struct buf *out)
{
    json_t *object = json_object();
    struct buf file = {0};
    uint32_t line = 0, column = 0;
    bool ok = object && set_text(object, "name", name->data, name->len_bytes);

    if (f) {
        name_plain(f->kind == EMIT_MARK ? "" : *f->file ? f->file : f->module, &file);
        name_position(f, s->options, NAME_AS_ASKED, &line, &column);
    }
    if (ok && file.len_bytes)
        ok = set_text(object, "file", file.data, file.len_bytes);
    if (ok && line)
        ok = !json_object_set_new(object, "line", json_integer(line));
    if (ok && column)
        ok = !json_object_set_new(object, "col", json_integer(column));
    ok = ok && !file.bad;
    buf_deinit(&file);
    if (!ok) {
        json_decref(object);
        return error_no_memory();
    }
    return json_put(object, out);
}

static struct error *number_frame(struct speedscope_stacks *s, uint32_t frame, const struct intern *texts,
                                  const uint32_t *ids, struct buf *scratch)
{
    const struct emit_frame *f = frame < s->model->frame_count ? &s->model->frames[frame] : NULL;

    if (s->frame_of[frame] != INTERN_NONE)
        return NULL;
    buf_clear(scratch);
    TRY(put_frame(s, f, intern_get(texts, ids[frame]), scratch));
    if (!scratch->bad)
        s->frame_of[frame] = intern_id(&s->frames, scratch->data, (uint32_t)scratch->len_bytes, NULL);
    return s->frame_of[frame] == INTERN_NONE ? error_no_memory() : NULL;
}

/* 0 when memory ran out. */
static uint32_t shown_child(struct speedscope_stacks *s, uint32_t parent, uint32_t frame)
{
    uint64_t key = (uint64_t)parent << 32 | frame;
    uint64_t *known = map_get(&s->children, key);
    struct speedscope_stack child = {.parent = parent, .frame = frame, .depth = s->shown.data[parent].depth + 1};

    if (known)
        return (uint32_t)*known;
    if (!map_set(&s->children, key, s->shown.count) || !VEC_PUSH(&s->shown, child))
        return 0;
    return (uint32_t)s->shown.count - 1;
}

static struct error *number_stacks(struct speedscope_stacks *s, const struct intern *texts, const uint32_t *ids)
{
    const struct emit_model *m = s->model;
    VEC(uint32_t) todo = {0};
    struct buf scratch = {0};
    struct error *err = NULL;

    for (uint32_t i = 0; !err && i < s->used.count; i++) {
        uint32_t shown = 0;
        if (!s->used.data[i])
            continue;
        todo.count = 0;
        for (uint32_t stack = i; !err && stack != EMIT_NO_STACK; stack = m->stacks[stack].parent) {
            if ((shown = s->shown_of[stack]))
                break;
            if (!VEC_PUSH(&todo, stack))
                err = error_no_memory();
        }
        while (!err && todo.count) {
            uint32_t stack = todo.data[--todo.count], frame = m->stacks[stack].frame;
            err = number_frame(s, frame, texts, ids, &scratch);
            if (!err && !(s->shown_of[stack] = shown = shown_child(s, shown, s->frame_of[frame])))
                err = error_no_memory();
        }
    }
    VEC_DEINIT(&todo);
    if (!err && s->has_empty) {
        err = number_frame(s, m->frame_count, texts, ids, &scratch);
        if (!err && !(s->shown_empty = shown_child(s, 0, s->frame_of[m->frame_count])))
            err = error_no_memory();
    }
    buf_deinit(&scratch);
    return err;
}

struct error *speedscope_stacks_number(struct speedscope_stacks *s)
{
    const struct emit_model *m = s->model;
    struct intern texts = {.arena.limits = s->options->limits};
    struct names names;
    uint32_t *ids = NULL;

    struct error *err = names_init(&names, m, s->options);
    if (!err)
        err = names_spell(&names, NAME_AS_ASKED, &texts, &ids);
    s->frame_of = malloc(((size_t)m->frame_count + 1) * sizeof *s->frame_of);
    s->shown_of = calloc((size_t)m->stack_count + 1, sizeof *s->shown_of);
    if (!err && (!s->frame_of || !s->shown_of || !VEC_PUSH(&s->shown, ((struct speedscope_stack){0}))))
        err = error_no_memory();
    if (!err) {
        memset(s->frame_of, 0xff, ((size_t)m->frame_count + 1) * sizeof *s->frame_of);
        err = number_stacks(s, &texts, ids);
    }
    free(ids);
    names_deinit(&names);
    intern_deinit(&texts);
    return err;
}

void speedscope_stacks_put(const struct speedscope_stacks *s, uint32_t shown, struct buf *out)
{
    const struct speedscope_stack *stacks = s->shown.data;
    size_t most = (size_t)stacks[shown].depth * 11 + 2;
    uint8_t *from = buf_reserve(out, most), *p = from + most;

    if (!from)
        return;
    /* Written backwards, since a stack is walked from its innermost frame. */
    *--p = ']';
    while (shown) {
        uint32_t v = stacks[shown].frame;
        do
            *--p = (uint8_t)('0' + v % 10);
        while (v /= 10);
        shown = stacks[shown].parent;
        if (shown)
            *--p = ',';
    }
    *--p = '[';
    memmove(from, p, (size_t)(from + most - p));
    out->len_bytes += (size_t)(from + most - p);
}
