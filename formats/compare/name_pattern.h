/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a rule names functions and files:
 *
 *     score              functions of that qualified name, or whose name ends in .score
 *     Cart.*             * stands for any text, ? for one character
 *     cart.py:add        in files whose path ends so: cart.py, shop/cart.py, /srv/shop/cart.py
 *     shop.cart:*        in a module, by its dotted name
 *     ~^/srv/.*:add$     a regular expression, found anywhere in "FILE:FUNCTION"
 *
 * Names come from traces: of each at most PATTERN_NAME_LIMIT_BYTES are looked at, and a pattern with stars takes time
 * with the product of both lengths at most.
 */
#ifndef FORMATS_COMPARE_NAME_PATTERN_H
#define FORMATS_COMPARE_NAME_PATTERN_H

#include <stdbool.h>

#include "formats/base/err.h"

struct name_pattern;
/* `text` is borrowed; `who` gave it, for the error. */
struct error *name_pattern_create(const char *who, const char *text, struct name_pattern **out);
void name_pattern_destroy(struct name_pattern *p);
bool name_pattern_matches(const struct name_pattern *p, const char *file, const char *function);
/* The whole of the pattern names files: such as myapp/db and a star behind it, or "~RE" for one found in the path. */
bool name_pattern_matches_file(const struct name_pattern *p, const char *file);
/* Does the text match, with * and ? in `glob`? */
bool glob_matches(const char *glob, const char *text);

#endif
