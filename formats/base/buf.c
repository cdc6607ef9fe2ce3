/* SPDX-License-Identifier: Apache-2.0 */
/* One block that doubles when it is full. Appending to a bad buffer does nothing. */
#include "formats/base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_deinit(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

uint8_t *buf_reserve(struct buf *b, size_t len_bytes)
{
    if (b->bad)
        return NULL;
    if (len_bytes > b->cap_bytes - b->len_bytes) {
        size_t cap = b->cap_bytes ? b->cap_bytes : 256;
        while (cap - b->len_bytes < len_bytes) {
            if (cap > SIZE_MAX / 2) {
                b->bad = true;
                return NULL;
            }
            cap *= 2;
        }
        uint8_t *data = realloc(b->data, cap);
        if (!data) {
            b->bad = true;
            return NULL;
        }
        b->data = data;
        b->cap_bytes = cap;
    }
    return b->data + b->len_bytes;
}

void buf_put_u16(struct buf *b, uint16_t v)
{
    buf_put(b, &v, sizeof v);
}

void buf_put_u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, sizeof v);
}

void buf_put_u64(struct buf *b, uint64_t v)
{
    buf_put(b, &v, sizeof v);
}

void buf_put_uleb(struct buf *b, uint64_t v)
{
    uint8_t *p = buf_reserve(b, 10);
    size_t n = 0;

    if (!p)
        return;
    while (v >= 0x80) {
        p[n++] = (uint8_t)v | 0x80;
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    b->len_bytes += n;
}

void buf_put_zigzag(struct buf *b, int64_t v)
{
    buf_put_uleb(b, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
}

void buf_put_sleb(struct buf *b, int64_t v)
{
    /* Ends with the first byte whose bit 6 is the sign of all that is left. */
    while (v < -64 || v > 63) {
        buf_put_u8(b, (uint8_t)((v & 0x7f) | 0x80));
        v >>= 7;
    }
    buf_put_u8(b, (uint8_t)(v & 0x7f));
}

void buf_put_decimal(struct buf *b, uint64_t v, unsigned width, char fill)
{
    enum { DIGITS_MAX = 20 };
    char digits[DIGITS_MAX];
    unsigned n = 0;

    do
        digits[DIGITS_MAX - ++n] = (char)('0' + v % 10);
    while (v /= 10);
    unsigned filled = width > n ? width - n : 0;
    uint8_t *p = buf_reserve(b, filled + n);
    if (!p)
        return;
    memset(p, fill, filled);
    memcpy(p + filled, digits + DIGITS_MAX - n, n);
    b->len_bytes += filled + n;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    char small[256];

    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->bad = true;
        return;
    }
    if ((size_t)n < sizeof small) {
        buf_put(b, small, (size_t)n);
        return;
    }
    char *p = (char *)buf_reserve(b, (size_t)n + 1);
    if (!p)
        return;
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len_bytes += (size_t)n;
}

const char *buf_cstr(struct buf *b)
{
    uint8_t *p = buf_reserve(b, 1);

    if (!p)
        return "";
    *p = 0;
    return (const char *)b->data;
}
