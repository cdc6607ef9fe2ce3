/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/html/rows.h"

#include "formats/emit/json.h"
#include "formats/emit/names.h"

void html_rows_deinit(struct html_rows *r)
{
    html_packed_deinit(&r->packed);
    buf_deinit(&r->text);
}

static struct error *flush(struct html_rows *r)
{
    if (r->text.bad)
        return error_no_memory();
    TRY(html_packed_put(&r->packed, r->text.data, r->text.len_bytes));
    buf_clear(&r->text);
    return NULL;
}

/* Appends a value, which it releases, to `text`. */
static struct error *put_value(struct html_rows *r, json_t *value, bool ok)
{
    if (ok)
        return json_put(value, &r->text);
    json_decref(value);
    return error_no_memory();
}

struct error *html_rows_begin(struct html_rows *r, json_t *object, bool ok)
{
    TRY(put_value(r, object, ok));
    r->text.len_bytes -= !r->text.bad; /* its last brace */
    return flush(r);
}

struct error *html_rows_begin_list(struct html_rows *r, const char *key)
{
    r->begun = false;
    buf_printf(&r->text, ",\"%s\":[", key);
    return flush(r);
}

struct error *html_rows_end_list(struct html_rows *r)
{
    return html_rows_put_plain(r, "]");
}

struct error *html_rows_put(struct html_rows *r, json_t *row, bool ok)
{
    if (r->begun)
        buf_put_u8(&r->text, ',');
    r->begun = true;
    TRY(put_value(r, row, ok));
    return flush(r);
}

struct error *html_rows_put_text(struct html_rows *r, const char *key, const char *text)
{
    buf_printf(&r->text, ",\"%s\":", key);
    json_put_foreign(text, &r->text);
    return flush(r);
}

struct error *html_rows_put_plain(struct html_rows *r, const char *text)
{
    buf_put_str(&r->text, text);
    return flush(r);
}

bool html_append_name(json_t *list, const char *name)
{
    struct buf text = {0};

    name_plain(name, &text);
    bool ok = !text.bad && !json_array_append_new(list, json_stringn((const char *)text.data, text.len_bytes));
    buf_deinit(&text);
    return ok;
}

bool html_append(json_t *list, json_t *value, bool ok)
{
    if (ok)
        return !json_array_append_new(list, value);
    json_decref(value);
    return false;
}
