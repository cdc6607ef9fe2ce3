/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text, made of jansson's values. It may stand in a script of a web page, too: nothing in it ends the script or
 * begins a comment.
 */
#ifndef FORMATS_EMIT_JSON_H
#define FORMATS_EMIT_JSON_H

#include <jansson.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"

/* Appends `value`, which it releases, also after an error. NULL is what jansson returns when memory ran out: an error. */
struct error *json_put(json_t *value, struct buf *out);
/* Appends a string with its quotes. `text` is UTF-8. */
struct error *json_put_text(const char *text, struct buf *out);
/*
 * The same for text from elsewhere, of any bytes. What a terminal would obey (utf8_is_control()) is escaped, which leaves
 * the value exact; bytes that are not UTF-8 become U+FFFD.
 */
void json_put_foreign(const char *text, struct buf *out);

#endif
