/* SPDX-License-Identifier: Apache-2.0 */
/* Explains rules for stacks that left nothing, or did nothing: for messages. */
#ifndef SYMBOLIZE_STACK_STACK_NOTHING_H
#define SYMBOLIZE_STACK_STACK_NOTHING_H

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "symbolize/stack/stack_map.h"

/*
 * Call after the last sample. If no stack with a frame came through the rules that choose, the error names the first one
 * behind which none is left, and functions that are named like its pattern, or else those with the most time. Else NULL.
 */
struct error *stack_nothing_left(const struct stack_map *map);
/*
 * Appends "no frame of these samples matches --hide 'x', --show 'y'": patterns that changed nothing. False: there are none.
 */
bool stack_nothing_matched(const struct stack_map *map, struct buf *out);

#endif
