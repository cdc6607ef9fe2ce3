/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/json.h"

#include <stdlib.h>
#include <string.h>

#include "formats/base/utf8.h"
#include "formats/emit/names.h"

static void put_for_pages(const char *json, struct buf *out)
{
    for (const char *next; (next = strchr(json, '<')); json = next + 1) {
        buf_put(out, json, (size_t)(next - json));
        buf_put_str(out, next[1] == '/' ? "<\\" : next[1] == '!' ? "\\u003c" : "<");
    }
    buf_put_str(out, json);
}

struct error *json_put(json_t *value, struct buf *out)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    json_decref(value);
    if (!text)
        return error_no_memory();
    put_for_pages(text, out);
    free(text);
    return NULL;
}

struct error *json_put_text(const char *text, struct buf *out)
{
    return json_put(json_string(text), out);
}

/* As "\\u202e"; above U+FFFF as the two halves of UTF-16. */
static void put_escaped(uint32_t code, struct buf *out)
{
    if (code > 0xffff) {
        buf_printf(out, "\\u%04x", 0xd7c0 + (code >> 10));
        code = 0xdc00 + (code & 0x3ff);
    }
    buf_printf(out, "\\u%04x", code);
}

void json_put_foreign(const char *text, struct buf *out)
{
    const uint8_t *s = (const uint8_t *)text, *plain = s;
    size_t len = strlen(text);

    buf_put_u8(out, '"');
    for (size_t used; len; s += used, len -= used) {
        uint32_t code = 0;
        size_t valid = utf8_decode(s, len, &code);
        used = valid ? valid : 1;
        if (valid && code != '"' && code != '\\' && !utf8_is_control(code))
            continue;
        buf_put(out, plain, (size_t)(s - plain));
        plain = s + used;
        if (!valid)
            buf_put_str(out, "\xef\xbf\xbd"); /* U+FFFD */
        else if (code == '"' || code == '\\')
            buf_printf(out, "\\%c", (int)code);
        else
            put_escaped(code, out);
    }
    buf_put(out, plain, (size_t)(s - plain));
    buf_put_u8(out, '"');
}

json_t *json_number(uint64_t v)
{
    return v > INT64_MAX ? json_real((double)v) : json_integer((json_int_t)v);
}

const char *json_weight_unit(const struct emit_event *event)
{
    return event_is_time(event->kind) ? "ns" : event_is_bytes(event->kind) ? "bytes" : "count";
}

bool json_set(json_t *object, const char *key, json_t *value)
{
    return !json_object_set_new(object, key, value);
}

bool json_set_name(json_t *object, const char *key, const char *name)
{
    struct buf clean = {0};

    name_plain(name, &clean);
    bool ok = !clean.bad && json_set(object, key, json_string(buf_cstr(&clean)));
    buf_deinit(&clean);
    return ok;
}

struct error *json_write(json_t *object, bool ok, bool open, FILE *out)
{
    struct buf text = {0};

    if (!ok) {
        json_decref(object);
        return error_no_memory();
    }
    struct error *err = json_put(object, &text);
    if (!err && text.bad)
        err = error_no_memory();
    if (!err)
        fwrite(text.data, 1, text.len_bytes - open, out);
    buf_deinit(&text);
    return err;
}
