/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which line of a new text an old one became: the lines that a shortest edit script leaves alone (Myers, An O(ND)
 * difference algorithm and its variations, Algorithmica 1, 1986). Blanks at both ends of a line do not count, so that lines
 * that were only indented stay the same.
 */
#ifndef SYMBOLIZE_COMPARE_LINE_MAP_H
#define SYMBOLIZE_COMPARE_LINE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/limits.h"

/* Texts that differ by more lines than this have no lines in common but those at their beginning and end. */
#define LINE_MAP_EDITS_MAX 2000

struct line_map {
    uint32_t *new_lines; /* by old line, from 0: the new line, from 1; 0: there is none */
    uint32_t count;
};

/* `limits` (NULL: none) counts the work. Fails where memory runs out; deinit the map also then. */
struct error *line_map_init(struct line_map *map, const char *old_text, const char *new_text, struct limits *limits);
void line_map_deinit(struct line_map *map);
/* The line that `old_line` became; both count from 1. 0: there is none. */
uint32_t line_map_get(const struct line_map *map, uint32_t old_line);

#endif
