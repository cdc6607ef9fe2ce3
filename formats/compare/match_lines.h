/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lines are one: those with the same place in equal code (line - first line), and, where the code changed, those that
 * the sources say are (compare_options.new_line). Without sources the lines of changed code are not compared.
 */
#ifndef FORMATS_COMPARE_MATCH_LINES_H
#define FORMATS_COMPARE_MATCH_LINES_H

#include "formats/compare/match.h"

struct line_class {
    uint32_t subject;
    uint32_t line[SIDE_COUNT]; /* of the set; RUN_SET_NONE: that side has no time there */
};

struct line_match {
    VEC(struct line_class) classes;
    uint32_t *of_line[SIDE_COUNT]; /* by line of the set; RUN_SET_NONE: not compared */
};

/* The caller deinits `m`, also after an error. */
struct error *line_match_init(struct line_match *m, const struct sides *s, const struct match *match,
                              const struct compare_options *options);
void line_match_deinit(struct line_match *m);

#endif
