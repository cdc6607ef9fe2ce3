/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object of JSON that is compressed as it is written, with lists of rows as its members. A trace may have very many
 * processes, so no list is kept as a whole.
 */
#ifndef FORMATS_EMIT_HTML_ROWS_H
#define FORMATS_EMIT_HTML_ROWS_H

#include <jansson.h>

#include "formats/emit/html/packed.h"

/* {.packed.limits = …} is empty. */
struct html_rows {
    struct html_packed packed;
    struct buf text; /* scratch */
    bool begun;      /* the list has a row */
};

void html_rows_deinit(struct html_rows *r);
/* Writes the members of `object`, which it releases, as the first ones. `ok` false: memory ran out while it was made. */
struct error *html_rows_begin(struct html_rows *r, json_t *object, bool ok);
/* Begins and ends a further member: a list. */
struct error *html_rows_begin_list(struct html_rows *r, const char *key);
struct error *html_rows_end_list(struct html_rows *r);
/* Writes a row of the list, which it releases. */
struct error *html_rows_put(struct html_rows *r, json_t *row, bool ok);
/* Writes a further member: a text of any bytes, whose value stays exact where they are UTF-8. */
struct error *html_rows_put_text(struct html_rows *r, const char *key, const char *text);
/* Writes text as it is: what stands between rows. */
struct error *html_rows_put_plain(struct html_rows *r, const char *text);

/* Appends a name from a trace (name_plain()). False: memory ran out. */
bool html_append_name(json_t *list, const char *name);
/* Appends a value, which may be NULL when memory ran out, as it may be where `ok` is false. */
bool html_append(json_t *list, json_t *value, bool ok);

#endif
