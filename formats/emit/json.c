/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/json.h"

#include <stdlib.h>
#include <string.h>

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
