/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps each recorded stack to the stack that is shown, or drops it. All outputs share this stage. A rule is a row of
 * the table in stack_rules.c and a function. A rule for frames replaces a frame everywhere or leaves it out; a rule for
 * stacks changes the whole list, and may drop it with its samples. Each is applied once per distinct stack, or, if it
 * depends on labels, once per stack and label set.
 */
#ifndef SYMBOLIZE_STACK_STACK_MAP_H
#define SYMBOLIZE_STACK_STACK_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/map.h"
#include "formats/base/pattern.h"
#include "formats/base/vec.h"
#include "symbolize/stack/frame_match.h"
#include "symbolize/stack/given.h"
#include "symbolize/stack/model.h"

/* The options that take patterns for frames. */
enum stack_pattern {
    STACK_AROUND, /* for a first pass only, which finds out when such stacks were sampled */
    STACK_FOCUS,
    STACK_IGNORE,
    STACK_ROOT_AT,
    STACK_CALLERS_OF,
    STACK_HIDE,
    STACK_SHOW,
    STACK_PATTERN_COUNT
};
/* Without dashes. */
extern const char *const stack_pattern_names[STACK_PATTERN_COUNT];

/* What frames are merged by. */
enum stack_group { STACK_GROUP_NONE, STACK_GROUP_MODULE, STACK_GROUP_PACKAGE, STACK_GROUP_FILE, STACK_GROUP_LAYER };

/* The options that change stacks. */
struct stack_map_options {
    bool labels;       /* stacks begin with their labels, such as [asyncio task fetch] */
    bool interpreters; /* stacks begin with their subinterpreter */
    bool by_function;  /* lines of one function are one frame */
    bool no_lines;     /* frames without lines and columns */
    bool collapse_recursion;
    unsigned layers;   /* those that are shown, 1 << EMIT_PYTHON and so on; 0: all */
    enum stack_group group;
    struct patterns patterns[STACK_PATTERN_COUNT];
    const struct given *given; /* for messages; borrowed; NULL: not known */
};
void stack_map_options_deinit(struct stack_map_options *o);

/* Frames of the model, outermost first. */
struct stack_list {
    uint32_t *data;
    size_t count, cap;
};

#define STACK_MAP_NO_FRAME UINT32_MAX

struct stack_map;
struct stack_rule {
    const char *option;
    bool (*is_enabled)(const struct stack_map_options *o);
    /* A row has one of the two. `frame` gives the frame that is shown instead; STACK_MAP_NO_FRAME: leave it out. */
    struct error *(*frame)(struct stack_map *map, uint32_t frame, uint32_t *shown);
    /* Changes the list in place. Sets *kept, which is true before, to false to drop the stack with its samples. */
    struct error *(*stack)(struct stack_map *map, uint32_t label_set, struct stack_list *list, bool *kept);
    bool chooses;   /* it was given to choose: if no stack with a frame is left behind it, that is an error */
    bool by_labels; /* `stack` depends on the labels, and does nothing for the empty label set */
};

/* In the order of application, rules for frames before rules for stacks; ends with a row without an option. */
extern const struct stack_rule stack_rules[];

struct stack_map_entry {
    uint32_t number;
    bool known;
};
/* A rule for stacks that the options select. */
struct stack_map_rule {
    const struct stack_rule *rule;
    bool kept; /* some stack came through it, with frames */
};

struct stack_map {
    struct model *model;
    const struct stack_map_options *options;
    struct frame_matches matches[STACK_PATTERN_COUNT]; /* of the options' patterns */
    VEC(const struct stack_rule *) frame_rules; /* those that the options select */
    VEC(struct stack_map_rule) list_rules;
    bool by_labels, by_stack;           /* some list rules depend on labels; some do not */
    VEC(struct stack_map_entry) frames; /* by frame: the result of the frame rules */
    VEC(struct stack_map_entry) stacks; /* by stack: the same for all its frames */
    VEC(struct stack_map_entry) groups; /* by frame: the frame of its group, see stack_groups.h */
    struct map lists;                   /* that stack << 32 | label set -> the result of the list rules */
    struct stack_list list;             /* scratch */
    VEC(uint64_t) dropped;              /* by recorded stack: weight of its samples that have no frame left */
};

/* `model`, `options` and `rules` are borrowed. */
struct error *stack_map_init(struct stack_map *map, struct model *model, const struct stack_map_options *options,
                             const struct stack_rule *rules);
void stack_map_deinit(struct stack_map *map);
/* True if every stack is shown unchanged. */
static inline bool stack_map_is_identity(const struct stack_map *map)
{
    return !map->frame_rules.count && !map->list_rules.count;
}
/* True if the options may leave out samples. */
bool stack_map_chooses(const struct stack_map *map);
/*
 * Finds the stack to show for a sample's stack of the model, labels and weight; *kept is false if the sample is dropped.
 */
struct error *stack_map_find(struct stack_map *map, uint32_t stack, uint32_t label_set, uint64_t weight,
                             uint32_t *shown, bool *kept);

#endif
