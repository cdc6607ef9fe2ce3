/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/stack_map.h"

const char *const stack_pattern_names[STACK_PATTERN_COUNT] = {[STACK_AROUND] = "around",
                                                              [STACK_FOCUS] = "focus",
                                                              [STACK_IGNORE] = "ignore",
                                                              [STACK_ROOT_AT] = "root-at",
                                                              [STACK_CALLERS_OF] = "callers-of",
                                                              [STACK_HIDE] = "hide",
                                                              [STACK_SHOW] = "show"};

void stack_map_options_deinit(struct stack_map_options *o)
{
    for (int i = 0; i < STACK_PATTERN_COUNT; i++)
        patterns_deinit(&o->patterns[i]);
}

#define DROPPED UINT64_MAX /* in `lists` */

struct error *stack_map_init(struct stack_map *map, struct model *model, const struct stack_map_options *options,
                             const struct stack_rule *rules)
{
    *map = (struct stack_map){.model = model, .options = options, .lists.limits = model->limits};
    for (int i = 0; i < STACK_PATTERN_COUNT; i++)
        TRY(frame_matches_init(&map->matches[i], &options->patterns[i]));
    for (const struct stack_rule *rule = rules; rule->option; rule++) {
        if (!rule->is_enabled(options))
            continue;
        if (!(rule->frame ? VEC_PUSH(&map->frame_rules, rule)
                          : VEC_PUSH(&map->list_rules, (struct stack_map_rule){.rule = rule})))
            return error_no_memory();
        map->by_labels |= rule->by_labels;
        map->by_stack |= rule->stack && !rule->by_labels;
    }
    return NULL;
}

void stack_map_deinit(struct stack_map *map)
{
    VEC_DEINIT(&map->frame_rules);
    VEC_DEINIT(&map->list_rules);
    VEC_DEINIT(&map->frames);
    VEC_DEINIT(&map->stacks);
    VEC_DEINIT(&map->groups);
    VEC_DEINIT(&map->list);
    VEC_DEINIT(&map->dropped);
    for (int i = 0; i < STACK_PATTERN_COUNT; i++)
        frame_matches_deinit(&map->matches[i]);
    map_deinit(&map->lists);
}

bool stack_map_chooses(const struct stack_map *map)
{
    for (size_t i = 0; i < map->list_rules.count; i++) {
        if (map->list_rules.data[i].rule->chooses)
            return true;
    }
    return false;
}

static struct error *map_frame(struct stack_map *map, uint32_t frame, uint32_t *shown)
{
    *shown = frame;
    if (frame < map->frames.count && map->frames.data[frame].known) {
        *shown = map->frames.data[frame].number;
        return NULL;
    }
    for (size_t i = 0; i < map->frame_rules.count && *shown != STACK_MAP_NO_FRAME; i++)
        TRY(map->frame_rules.data[i]->frame(map, *shown, shown));
    if (!VEC_EXTEND_ZERO(&map->frames, (size_t)frame + 1))
        return error_no_memory();
    map->frames.data[frame] = (struct stack_map_entry){.number = *shown, .known = true};
    return NULL;
}

static struct error *extend(struct stack_map *map, uint32_t *stack, uint32_t frame)
{
    *stack = model_stack(map->model, *stack, frame);
    return *stack == MODEL_NONE ? error_no_memory() : NULL;
}

/* Applies the rules for frames: walks outwards to a stack with a known result, then inwards again. */
static struct error *map_frames(struct stack_map *map, uint32_t stack, uint32_t *shown)
{
    uint32_t frame;

    *shown = EMIT_NO_STACK;
    map->list.count = 0;
    for (uint32_t at = stack; at != EMIT_NO_STACK; at = map->model->stacks.data[at].parent) {
        if (at < map->stacks.count && map->stacks.data[at].known) {
            *shown = map->stacks.data[at].number;
            break;
        }
        if (!VEC_PUSH(&map->list, at))
            return error_no_memory();
    }
    if (stack != EMIT_NO_STACK && !VEC_EXTEND_ZERO(&map->stacks, (size_t)stack + 1))
        return error_no_memory();
    while (map->list.count) {
        uint32_t at = map->list.data[--map->list.count];
        TRY(map_frame(map, map->model->stacks.data[at].frame, &frame));
        if (frame != STACK_MAP_NO_FRAME)
            TRY(extend(map, shown, frame));
        map->stacks.data[at] = (struct stack_map_entry){.number = *shown, .known = true};
    }
    return NULL;
}

/* Applies the rules for stacks. */
static struct error *map_list(struct stack_map *map, uint32_t stack, uint32_t label_set, uint32_t *shown, bool *kept)
{
    map->list.count = 0;
    for (uint32_t at = stack; at != EMIT_NO_STACK; at = map->model->stacks.data[at].parent) {
        if (!VEC_PUSH(&map->list, map->model->stacks.data[at].frame))
            return error_no_memory();
    }
    for (size_t i = 0, k = map->list.count; i + 1 < k; i++) {
        uint32_t frame = map->list.data[--k];
        map->list.data[k] = map->list.data[i];
        map->list.data[i] = frame;
    }
    uint64_t labels = 1 + map->model->label_sets.data[label_set].count;
    if (!limits_work(map->model->limits, map->list.count * (60 + labels)))
        return error_no_memory();
    for (size_t i = 0; i < map->list_rules.count && *kept; i++) {
        TRY(map->list_rules.data[i].rule->stack(map, label_set, &map->list, kept));
        map->list_rules.data[i].kept |= *kept && map->list.count;
    }
    *shown = EMIT_NO_STACK;
    for (size_t i = 0; i < map->list.count && *kept; i++)
        TRY(extend(map, shown, map->list.data[i]));
    return NULL;
}

/* The same through the table of known results. */
static struct error *find_list(struct stack_map *map, uint32_t label_set, uint32_t *shown, bool *kept)
{
    uint32_t from = *shown;
    uint64_t key = (uint64_t)from << 32 | (map->by_labels ? label_set : 0), *known = map_get(&map->lists, key);

    if (known) {
        *kept = *known != DROPPED;
        *shown = *kept ? (uint32_t)*known : EMIT_NO_STACK;
        return NULL;
    }
    TRY(map_list(map, from, label_set, shown, kept));
    return map_set(&map->lists, key, *kept ? *shown : DROPPED) ? NULL : error_no_memory();
}

struct error *stack_map_find(struct stack_map *map, uint32_t stack, uint32_t label_set, uint64_t weight,
                             uint32_t *shown, bool *kept)
{
    *shown = stack;
    *kept = true;
    if (map->frame_rules.count)
        TRY(map_frames(map, stack, shown));
    if (!map->by_stack && !(map->by_labels && label_set))
        return NULL;
    TRY(find_list(map, label_set, shown, kept));
    if ((*kept && *shown != EMIT_NO_STACK) || stack == EMIT_NO_STACK)
        return NULL;
    if (!VEC_EXTEND_ZERO(&map->dropped, (size_t)stack + 1))
        return error_no_memory();
    map->dropped.data[stack] += weight;
    return NULL;
}
