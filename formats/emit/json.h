/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text, made of jansson's values. It may stand in a script of a web page, too: nothing in it ends the script or
 * begins a comment.
 */
#ifndef FORMATS_EMIT_JSON_H
#define FORMATS_EMIT_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/emit/emit.h"

/* Appends `value`, which it releases, also after an error. NULL is what jansson returns when memory ran out: an error. */
struct error *json_put(json_t *value, struct buf *out);
/* Appends a string with its quotes. `text` is UTF-8. */
struct error *json_put_text(const char *text, struct buf *out);
/*
 * The same for text from elsewhere, of any bytes. What a terminal would obey (utf8_is_control()) is escaped, which leaves
 * the value exact; bytes that are not UTF-8 become U+FFFD.
 */
void json_put_foreign(const char *text, struct buf *out);

/* A number; beyond INT64_MAX, where jansson's integers end and only a made-up trace comes, a real one. */
json_t *json_number(uint64_t v);
/* The unit of an event's weights, for names of members: "ns", "bytes", "count". */
const char *json_weight_unit(const struct emit_event *event);
/* Adds a member, which may be NULL when memory ran out. False: memory ran out. */
bool json_set(json_t *object, const char *key, json_t *value);
/* The same of a name from a trace (name_plain()). */
bool json_set_name(json_t *object, const char *key, const char *name);
/*
 * Writes an object, which it releases; with `open` all but its last brace, so that a list may follow as its last member.
 * `ok` false says that memory ran out while it was made: an error. A failed write is found by whoever closes the file.
 */
struct error *json_write(json_t *object, bool ok, bool open, FILE *out);

#endif
