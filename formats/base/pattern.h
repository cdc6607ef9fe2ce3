/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regular expressions that users give, in filters and in rules: POSIX extended ones of libc, compiled once, searched for anywhere in a
 * name. A pattern for frames may begin with "function:", "file:", "module:" or "line:", which narrows it to that part; a
 * line is a number, or "unknown".
 */
#ifndef FORMATS_BASE_PATTERN_H
#define FORMATS_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "formats/base/err.h"

/* Of a longer name only so much is searched: some expressions take time with the square of the length. */
#define PATTERN_NAME_LIMIT_BYTES 4096

enum pattern_part { PATTERN_ANY_PART, PATTERN_FUNCTION, PATTERN_FILE, PATTERN_MODULE, PATTERN_LINE };

struct pattern;
/* Patterns in the order in which they were given: a VEC. */
struct patterns {
    struct pattern **data;
    size_t count, cap;
};

/* Compiles `text`, which is borrowed. ERROR_USAGE begins with `who` gave it, such as "--focus", and says what libc objects to;
 * also what would cost it too much: over 16 KiB, 200 groups or 4,096 repeats within each other. */
struct error *pattern_create(const char *who, const char *text, struct pattern **out);
/*
 * The same for names of processes, threads and tasks, which may have parentheses and brackets: a text that was copied from
 * an output means itself, too; and only that, if it is no expression.
 */
struct error *pattern_create_for_names(const char *who, const char *text, struct pattern **out);
/* The same for frames: reads the prefix. */
struct error *pattern_create_for_frames(const char *who, const char *text, struct pattern **out);
void pattern_destroy(struct pattern *p);
void patterns_deinit(struct patterns *list);

enum pattern_part pattern_part(const struct pattern *p);
/* As it was given, with its prefix. */
const char *pattern_text(const struct pattern *p);
/* True if the expression is found in the name, or it is the name itself where that counts. */
bool pattern_finds(const struct pattern *p, const char *name);
/* True if one of them is. */
bool patterns_find(const struct patterns *list, const char *name);

#endif
