/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the stack that was recorded to the one that is shown, or to none: the one stage that every output shares. A rule
 * is a row of the table in stack_rules.c and a function; a rule for frames replaces a frame or leaves it out wherever
 * it is met, a rule for stacks changes the list as a whole, and may drop it with its samples. Each is applied once per
 * distinct stack, and where it looks at labels once per stack and label set.
 */
#ifndef SYMBOLIZE_STACK_STACK_MAP_H
#define SYMBOLIZE_STACK_STACK_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "symbolize/stack/model.h"

/* What the options say. */
struct stack_map_options {
    bool labels;       /* stacks begin with their labels, such as [asyncio task fetch] */
    bool interpreters; /* of the labels, those of subinterpreters */
    bool by_function;  /* lines of one function are one frame */
    bool no_lines;     /* frames without lines and columns */
};

/* Frames of the model, outermost first. */
struct stack_list {
    uint32_t *data;
    size_t count, cap;
};

#define STACK_MAP_NO_FRAME UINT32_MAX

struct stack_rule {
    const char *option;
    bool (*is_asked)(const struct stack_map_options *o);
    /* One of the two. What stands for the frame; STACK_MAP_NO_FRAME: nothing does. */
    struct error *(*frame)(struct model *m, uint32_t frame, uint32_t *shown);
    /* Changes the list in place; *kept, which is true before, says whether its samples are shown at all. */
    struct error *(*stack)(struct model *m, const struct stack_map_options *o, uint32_t label_set,
                           struct stack_list *list, bool *kept);
    bool by_labels; /* `stack` looks at the labels, and does nothing where there are none */
};

/* In the order in which they are applied, those for frames before those for stacks; ends with one without a name. */
extern const struct stack_rule stack_rules[];

struct stack_map_entry {
    uint32_t number;
    bool known;
};

struct stack_map {
    struct model *model;
    const struct stack_map_options *options;
    VEC(const struct stack_rule *) frame_rules, list_rules; /* those that are asked for */
    bool by_labels, by_stack;           /* some list rules look at labels; some do not */
    VEC(struct stack_map_entry) frames; /* by frame: what the frame rules make of it */
    VEC(struct stack_map_entry) stacks; /* by stack: the same of all its frames */
    struct map lists;                   /* that stack << 32 | label set -> what the list rules make of it */
    struct stack_list list;             /* scratch */
};

/* `model`, `options` and `rules` are borrowed. */
struct error *stack_map_init(struct stack_map *map, struct model *model, const struct stack_map_options *options,
                             const struct stack_rule *rules);
void stack_map_deinit(struct stack_map *map);
/* True: every stack is shown as it is, whatever its labels. */
static inline bool stack_map_is_identity(const struct stack_map *map)
{
    return !map->frame_rules.count && !map->list_rules.count;
}
/* What is shown for a stack of the model with these labels; *kept is false when its samples are not shown at all. */
struct error *stack_map_find(struct stack_map *map, uint32_t stack, uint32_t label_set, uint32_t *shown, bool *kept);

#endif
