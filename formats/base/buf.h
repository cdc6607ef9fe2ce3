/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte buffer, for encoding and for text.
 *
 * Appending returns nothing: when memory runs out the buffer becomes `bad` and stays
 * so, and the owner checks once, where the result is used. {0} is an empty buffer;
 * buf_deinit() frees it. Numbers are little endian.
 */
#ifndef FORMATS_BASE_BUF_H
#define FORMATS_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buf {
    uint8_t *data;
    size_t len_bytes, cap_bytes;
    bool bad;
};

void buf_deinit(struct buf *b);
static inline void buf_clear(struct buf *b)
{
    b->len_bytes = 0;
}
/* Makes room for `len_bytes` more at the end and returns where it is; NULL: out of memory. The length stays. */
uint8_t *buf_reserve(struct buf *b, size_t len_bytes);
static inline void buf_put(struct buf *b, const void *data, size_t len_bytes)
{
    bool fits = !b->bad && len_bytes <= b->cap_bytes - b->len_bytes;
    uint8_t *p = !len_bytes ? NULL : fits ? b->data + b->len_bytes : buf_reserve(b, len_bytes);

    if (!p)
        return;
    memcpy(p, data, len_bytes);
    b->len_bytes += len_bytes;
}
static inline void buf_put_u8(struct buf *b, uint8_t v)
{
    buf_put(b, &v, sizeof v);
}
void buf_put_u16(struct buf *b, uint16_t v);
void buf_put_u32(struct buf *b, uint32_t v);
void buf_put_u64(struct buf *b, uint64_t v);
/* Unsigned LEB128, zigzag over it for signed numbers, and signed LEB128 (bytes.h reads all three). */
void buf_put_uleb(struct buf *b, uint64_t v);
void buf_put_zigzag(struct buf *b, int64_t v);
void buf_put_sleb(struct buf *b, int64_t v);
static inline void buf_put_str(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}
/* A number in decimal, with `fill` before it up to `width` characters; width 0: as long as it is. */
void buf_put_decimal(struct buf *b, uint64_t v, unsigned width, char fill);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The content as a C string, valid until the next change; "" when bad. */
const char *buf_cstr(struct buf *b);

#endif
