/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/stack_filters.h"

#include <string.h>

static struct error *matches_any(struct stack_map *map, enum stack_pattern which, uint32_t frame, bool *matches)
{
    return frame_matches_find(&map->matches[which], map->model, frame, matches);
}

/* ---- which stacks ---- */

/* Keeps the list if each of the patterns has a match on it. */
static struct error *keep_matching(struct stack_map *map, enum stack_pattern which, const struct stack_list *list,
                                   bool *kept)
{
    struct frame_matches *patterns = &map->matches[which];

    for (size_t i = 0; i < patterns->count; i++) {
        bool found = false;
        for (size_t k = 0; k < list->count && !found; k++)
            TRY(frame_match_find(&patterns->data[i], map->model, list->data[k], &found));
        *kept &= found;
    }
    return NULL;
}

bool stack_has_around(const struct stack_map_options *o)
{
    return o->patterns[STACK_AROUND].count;
}

STACK_RULE_FUNCTION(stack_around)
{
    (void)label_set;
    return keep_matching(map, STACK_AROUND, list, kept);
}

bool stack_has_focus(const struct stack_map_options *o)
{
    return o->patterns[STACK_FOCUS].count;
}

STACK_RULE_FUNCTION(stack_focus)
{
    (void)label_set;
    return keep_matching(map, STACK_FOCUS, list, kept);
}

bool stack_has_ignore(const struct stack_map_options *o)
{
    return o->patterns[STACK_IGNORE].count;
}

STACK_RULE_FUNCTION(stack_ignore)
{
    bool matches;

    (void)label_set;
    for (size_t i = 0; i < list->count && *kept; i++) {
        TRY(matches_any(map, STACK_IGNORE, list->data[i], &matches));
        *kept = !matches;
    }
    return NULL;
}

/* ---- where they begin and end ---- */

bool stack_has_root_at(const struct stack_map_options *o)
{
    return o->patterns[STACK_ROOT_AT].count;
}

STACK_RULE_FUNCTION(stack_root_at)
{
    bool matches;

    (void)label_set;
    for (size_t i = 0; i < list->count; i++) {
        TRY(matches_any(map, STACK_ROOT_AT, list->data[i], &matches));
        if (matches) {
            list->count -= i;
            memmove(list->data, list->data + i, list->count * sizeof *list->data);
            return NULL;
        }
    }
    *kept = false;
    return NULL;
}

bool stack_has_callers_of(const struct stack_map_options *o)
{
    return o->patterns[STACK_CALLERS_OF].count;
}

STACK_RULE_FUNCTION(stack_callers_of)
{
    bool matches = false;

    (void)label_set;
    while (list->count && !matches) {
        TRY(matches_any(map, STACK_CALLERS_OF, list->data[list->count - 1], &matches));
        if (!matches)
            list->count--;
    }
    *kept = matches;
    return NULL;
}

/* ---- which frames ---- */

bool stack_has_hide(const struct stack_map_options *o)
{
    return o->patterns[STACK_HIDE].count;
}

static struct error *keep_frames(struct stack_map *map, struct stack_list *list, enum stack_pattern which, bool wanted)
{
    size_t count = 0;
    bool matches;

    for (size_t i = 0; i < list->count; i++) {
        TRY(matches_any(map, which, list->data[i], &matches));
        if (matches == wanted)
            list->data[count++] = list->data[i];
    }
    list->count = count;
    return NULL;
}

STACK_RULE_FUNCTION(stack_hide)
{
    (void)label_set;
    (void)kept;
    return keep_frames(map, list, STACK_HIDE, false);
}

bool stack_has_show(const struct stack_map_options *o)
{
    return o->patterns[STACK_SHOW].count;
}

STACK_RULE_FUNCTION(stack_show)
{
    (void)label_set;
    (void)kept;
    return keep_frames(map, list, STACK_SHOW, true);
}

bool stack_has_layers(const struct stack_map_options *o)
{
    return o->layers;
}

STACK_RULE_FUNCTION(stack_layers)
{
    unsigned layers = map->options->layers | 1u << EMIT_MARK;
    size_t count = 0;

    (void)label_set;
    (void)kept;
    for (size_t i = 0; i < list->count; i++) {
        if (layers >> map->model->frames.data[list->data[i]].kind & 1)
            list->data[count++] = list->data[i];
    }
    list->count = count;
    return NULL;
}
