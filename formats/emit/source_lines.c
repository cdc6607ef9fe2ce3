/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/source_lines.h"

#include <string.h>

bool source_lines_init(struct source_lines *l, const char *text, size_t len)
{
    *l = (struct source_lines){.text = text};
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        if (!VEC_PUSH(&l->starts, (uint32_t)at))
            return false;
        at = end ? (size_t)(end - text) + 1 : len + 1;
        if (at >= len)
            return VEC_PUSH(&l->starts, (uint32_t)at);
    }
    return true;
}

void source_lines_deinit(struct source_lines *l)
{
    VEC_DEINIT(&l->starts);
}

const char *source_lines_get(const struct source_lines *l, uint32_t number, size_t *len)
{
    if (!number || number > source_lines_count(l))
        return NULL;
    *len = l->starts.data[number] - 1 - l->starts.data[number - 1];
    return l->text + l->starts.data[number - 1];
}
