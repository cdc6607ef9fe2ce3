/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for stacks that choose: samples by what is on their stack, where a stack begins and ends, and which of its frames
 * are shown. What is left out in the middle of a stack leaves its time to the caller. See struct stack_rule.
 */
#ifndef SYMBOLIZE_STACK_STACK_FILTERS_H
#define SYMBOLIZE_STACK_STACK_FILTERS_H

#include "symbolize/stack/stack_map.h"

#define STACK_RULE_FUNCTION(name) \
    struct error *name(struct stack_map *map, uint32_t label_set, struct stack_list *list, bool *kept)

/* Keeps stacks on which every pattern has a match, both of them; */
bool stack_has_around(const struct stack_map_options *o);
STACK_RULE_FUNCTION(stack_around);
bool stack_has_focus(const struct stack_map_options *o);
STACK_RULE_FUNCTION(stack_focus);
/* those on which none has; */
bool stack_has_ignore(const struct stack_map_options *o);
STACK_RULE_FUNCTION(stack_ignore);
/* those with a match, from the outermost one on; */
bool stack_has_root_at(const struct stack_map_options *o);
STACK_RULE_FUNCTION(stack_root_at);
/* those with a match, up to the innermost one. */
bool stack_has_callers_of(const struct stack_map_options *o);
STACK_RULE_FUNCTION(stack_callers_of);

/* Leaves out the frames that match; */
bool stack_has_hide(const struct stack_map_options *o);
STACK_RULE_FUNCTION(stack_hide);
/* those that do not; */
bool stack_has_show(const struct stack_map_options *o);
STACK_RULE_FUNCTION(stack_show);
/* those of other layers, but for marks such as [torn]. */
bool stack_has_layers(const struct stack_map_options *o);
STACK_RULE_FUNCTION(stack_layers);

#endif
