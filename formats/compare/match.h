/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which functions of the old runs and the new ones are one: a subject.
 *
 * - The same file (match_files.h) and name: the same function, wherever its first line is now. That is the line of its
 *   decorator where it has one, so it moves with that. Where one file has several of a name (before CPython 3.11 a name does
 *   not tell its class), they are told apart by code and by order.
 * - Gone there and new here, with the same code, and no other candidate: moved (the same name in another file) or renamed
 *   (another name in the same file). That is a guess, and said to be one.
 * - What lies in a renamed function or class is renamed with it.
 */
#ifndef FORMATS_COMPARE_MATCH_H
#define FORMATS_COMPARE_MATCH_H

#include "formats/compare/match_codes.h"
#include "formats/compare/match_files.h"
#include "formats/compare/sides.h"
#include "formats/compare/subject.h"

struct match {
    struct file_match files;
    struct match_codes codes;
    VEC(struct subject) subjects;
    uint32_t *of_function[SIDE_COUNT]; /* by function of the set; RUN_SET_NONE: it has no time on that side */
};

/* The caller deinits `m`, also after an error. */
struct error *match_init(struct match *m, const struct sides *s);
void match_deinit(struct match *m);

#endif
