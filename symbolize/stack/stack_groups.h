/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for stacks that make frames coarser: --group puts one frame in place of neighbours that belong together,
 * --collapse-recursion shows a cycle of calls once. See struct stack_rule.
 */
#ifndef SYMBOLIZE_STACK_STACK_GROUPS_H
#define SYMBOLIZE_STACK_STACK_GROUPS_H

#include "formats/base/buf.h"
#include "symbolize/stack/stack_map.h"

#define STACK_CYCLE_MAX 32 /* frames of a cycle that --collapse-recursion finds */

bool stack_has_group(const struct stack_map_options *o);
struct error *stack_group(struct stack_map *map, uint32_t label_set, struct stack_list *list, bool *kept);

bool stack_collapses(const struct stack_map_options *o);
struct error *stack_collapse(struct stack_map *map, uint32_t label_set, struct stack_list *list, bool *kept);

/*
 * Appends the name of the group that a frame belongs to. Of Python frames
 *
 *     module    "django.db.models" of …/site-packages/django/db/models/__init__.py, "json.decoder" of
 *               …/lib/python3.12/json/decoder.py, "views" of a file that lies in no such folder
 *     package   the first part of it; of a file that lies in no such folder the name of its own folder
 *     file      the path
 *
 * Of native ones the module is the binary's name without its folder; the package is that of the folder of packages in
 * which the binary lies, else its module; the file is the source file, else the binary's path. A layer is "Python",
 * "native" or "kernel".
 */
void stack_group_name(enum stack_group group, const struct emit_frame *frame, struct buf *out);

#endif
