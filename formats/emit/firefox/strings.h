/* SPDX-License-Identifier: Apache-2.0 */
/* The table of strings of the Firefox Profiler's file, which all other tables refer to by number. */
#ifndef FORMATS_EMIT_FIREFOX_STRINGS_H
#define FORMATS_EMIT_FIREFOX_STRINGS_H

#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/intern.h"

#define FIREFOX_NONE UINT32_MAX /* no number; also: out of memory */

/* {.texts.arena.limits} is an empty one. */
struct firefox_strings {
    struct intern texts; /* with their NUL */
    struct buf scratch;
};

void firefox_strings_deinit(struct firefox_strings *s);
/* The number of a text that is clean already (names.h). FIREFOX_NONE: out of memory. */
uint32_t firefox_string(struct firefox_strings *s, struct buf *text);
/* The same of a name from a trace, which is cleaned. */
uint32_t firefox_plain_string(struct firefox_strings *s, const char *name);
/* Writes the list. A failed write is found by whoever closes the file. */
struct error *firefox_strings_write(struct firefox_strings *s, FILE *out);

#endif
