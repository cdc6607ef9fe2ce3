/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/columns.h"

#include <string.h>

#include "formats/base/utf8.h"

/* Where the character number `count` begins, counted from 0. */
static size_t character(const uint8_t *text, size_t len, size_t count)
{
    size_t i = 0;

    for (; count && i < len; count--) {
        uint32_t c;
        size_t bytes = utf8_decode(text + i, len - i, &c);
        i += bytes ? bytes : 1;
    }
    return i;
}

size_t columns_of(const void *text, size_t len_bytes)
{
    size_t count = 0;

    for (size_t i = 0; i < len_bytes; count++)
        i += character((const uint8_t *)text + i, len_bytes - i, 1);
    return count;
}

void columns_cut(struct buf *out, const void *text, size_t len_bytes, size_t columns)
{
    size_t count = columns_of(text, len_bytes), head = columns / 2, tail = columns - head - 1;

    if (count <= columns) {
        buf_put(out, text, len_bytes);
        return;
    }
    buf_put(out, text, character(text, len_bytes, head));
    buf_put_str(out, "\xe2\x80\xa6"); /* U+2026, three dots */
    size_t from = character(text, len_bytes, count - tail);
    buf_put(out, (const uint8_t *)text + from, len_bytes - from);
}

void columns_cut_end(struct buf *out, const void *text, size_t len_bytes, size_t columns)
{
    bool fits = columns_of(text, len_bytes) <= columns;

    buf_put(out, text, fits ? len_bytes : character(text, len_bytes, columns - 1));
    buf_put_str(out, fits ? "" : "\xe2\x80\xa6"); /* U+2026, three dots */
}

void columns_fill(struct buf *out, const char *text, size_t columns)
{
    columns_cut(out, text, strlen(text), columns);
    for (size_t count = columns_of(text, strlen(text)); count < columns; count++)
        buf_put_str(out, " ");
}
