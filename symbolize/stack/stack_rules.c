/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that options apply to stacks, see stack_map.h. To add one, write a function and a row in `stack_rules`.
 *
 * The order is part of what users are told (pysym(1)): which samples, by stacks as they were recorded; where stacks begin
 * and end; which frames are shown; how they are grouped; recursion last, since groups recur where functions do not.
 * Labels are put in front of what is left, so that no pattern hides them.
 */
#include <string.h>

#include "formats/base/buf.h"
#include "formats/trace/trace.h"
#include "symbolize/stack/stack_filters.h"
#include "symbolize/stack/stack_groups.h"
#include "symbolize/stack/stack_map.h"

static struct error *change(struct model *m, const struct model_frame *frame, uint32_t *shown)
{
    *shown = model_frame(m, frame);
    return *shown == MODEL_NONE ? error_no_memory() : NULL;
}

static bool function_is_enabled(const struct stack_map_options *o)
{
    return o->by_function;
}

/* All lines of a function become its first line. */
static struct error *merge_lines(struct stack_map *map, uint32_t frame, uint32_t *shown)
{
    struct model_frame f = model_frame_get(map->model, frame);

    f.line = f.function_line;
    f.column = 0;
    return change(map->model, &f, shown);
}

static bool nolineno_is_enabled(const struct stack_map_options *o)
{
    return o->no_lines;
}

static struct error *drop_lines(struct stack_map *map, uint32_t frame, uint32_t *shown)
{
    struct model_frame f = model_frame_get(map->model, frame);

    f.line = f.column = f.function_line = f.function_end = 0;
    return change(map->model, &f, shown);
}

static bool labels_are_enabled(const struct stack_map_options *o)
{
    return o->labels || o->interpreters;
}

/* A label as a frame: "[key value]". */
static struct error *label_frame(struct model *m, const struct emit_label *label, uint32_t *frame)
{
    struct model_frame mark = {.kind = EMIT_MARK, .mapping = EMIT_NO_MAPPING};
    struct buf text = {0};

    buf_printf(&text, "[%s %s]", label->key, label->value);
    mark.function = text.bad ? MODEL_NONE : model_text(m, (const char *)text.data, text.len_bytes);
    buf_deinit(&text);
    return mark.function == MODEL_NONE ? error_no_memory() : change(m, &mark, frame);
}

/* Is the label shown as one of the outermost frames? What was waited for is the innermost one already. */
static bool is_put(const struct stack_map *map, const struct emit_label *label)
{
    if (!strcmp(label->key, trace_label_key(TRACE_LABEL_wait)))
        return false;
    return map->options->labels || trace_label_is_shown(label->key);
}

/* Labels become the outermost frames. */
static struct error *put_labels(struct stack_map *map, uint32_t label_set, struct stack_list *list, bool *kept)
{
    struct model *m = map->model;
    const struct emit_label_set *set = &m->label_sets.data[label_set];
    size_t count = 0;

    (void)kept;
    if (!VEC_RESERVE(list, list->count + set->count))
        return error_no_memory();
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t frame;
        if (!is_put(map, &set->labels[i]))
            continue;
        TRY(label_frame(m, &set->labels[i], &frame));
        memmove(list->data + count + 1, list->data + count, (list->count - count) * sizeof *list->data);
        list->data[count++] = frame;
        list->count++;
    }
    return NULL;
}

const struct stack_rule stack_rules[] = {
    {.option = "--function", .is_enabled = function_is_enabled, .frame = merge_lines},
    {.option = "--nolineno", .is_enabled = nolineno_is_enabled, .frame = drop_lines},
    {.option = "--around", .is_enabled = stack_has_around, .stack = stack_around, .chooses = true},
    {.option = "--focus", .is_enabled = stack_has_focus, .stack = stack_focus, .chooses = true},
    {.option = "--ignore", .is_enabled = stack_has_ignore, .stack = stack_ignore, .chooses = true},
    {.option = "--root-at", .is_enabled = stack_has_root_at, .stack = stack_root_at, .chooses = true},
    {.option = "--callers-of", .is_enabled = stack_has_callers_of, .stack = stack_callers_of, .chooses = true},
    {.option = "--hide", .is_enabled = stack_has_hide, .stack = stack_hide, .chooses = true},
    {.option = "--show", .is_enabled = stack_has_show, .stack = stack_show, .chooses = true},
    {.option = "--layer", .is_enabled = stack_has_layers, .stack = stack_layers, .chooses = true},
    {.option = "--group", .is_enabled = stack_has_group, .stack = stack_group},
    {.option = "--collapse-recursion", .is_enabled = stack_collapses, .stack = stack_collapse},
    {.option = "--labels, --threads", .is_enabled = labels_are_enabled, .stack = put_labels, .by_labels = true},
    {0},
};
