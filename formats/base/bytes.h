/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounds-checked cursor over bytes that we did not write ourselves.
 *
 * Every read checks the end first. A failed read returns zero (or NULL) and
 * makes the cursor `bad`; it stays bad, so a decoder may read a whole record
 * and check once at the end. Little endian.
 */
#ifndef FORMATS_BASE_BYTES_H
#define FORMATS_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *start, *pos, *end;
    bool bad;
};

static inline struct bytes bytes_of(const void *data, size_t len_bytes)
{
    const uint8_t *p = data;

    return (struct bytes){.start = p, .pos = p, .end = p ? p + len_bytes : p};
}

static inline size_t bytes_left(const struct bytes *b)
{
    return b->bad ? 0 : (size_t)(b->end - b->pos);
}

static inline size_t bytes_offset(const struct bytes *b)
{
    return (size_t)(b->pos - b->start);
}

/* Returns the next `len_bytes` in place and moves behind them, or NULL. */
static inline const uint8_t *bytes_take(struct bytes *b, uint64_t len_bytes)
{
    const uint8_t *p = b->pos;

    if (b->bad || len_bytes > (uint64_t)(b->end - b->pos)) {
        b->bad = true;
        return NULL;
    }
    b->pos += len_bytes;
    return p;
}

static inline void bytes_skip(struct bytes *b, uint64_t len_bytes)
{
    (void)bytes_take(b, len_bytes);
}

static inline void bytes_seek(struct bytes *b, uint64_t offset)
{
    if (b->bad || offset > (uint64_t)(b->end - b->start))
        b->bad = true;
    else
        b->pos = b->start + offset;
}

#define BYTES_FIXED(bits)                                        \
    static inline uint##bits##_t bytes_u##bits(struct bytes *b)  \
    {                                                            \
        const uint8_t *p = bytes_take(b, bits / 8);              \
        uint##bits##_t v = 0;                                    \
        if (p)                                                   \
            memcpy(&v, p, sizeof v);                             \
        return v;                                                \
    }
BYTES_FIXED(8)
BYTES_FIXED(16)
BYTES_FIXED(32)
BYTES_FIXED(64)
#undef BYTES_FIXED

/* Unsigned LEB128, at most 64 bits; longer or overflowing encodings are bad. Reading samples is mostly this loop. */
static inline uint64_t bytes_uleb(struct bytes *b)
{
    const uint8_t *p = b->pos, *end = b->bad ? p : b->end;
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        uint8_t byte = *p++;
        uint64_t part = byte & 0x7f;
        if (shift == 63 && part > 1)
            break;
        v |= part << shift;
        if (!(byte & 0x80)) {
            b->pos = p;
            return v;
        }
    }
    b->pos = p;
    b->bad = true;
    return 0;
}

/* Signed LEB128 (DWARF). */
static inline int64_t bytes_sleb(struct bytes *b)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        byte = bytes_u8(b);
        if (b->bad || shift >= 64) {
            b->bad = true;
            return 0;
        }
        v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40))
        v |= ~(uint64_t)0 << shift;
    return (int64_t)v;
}

/* Zigzag over unsigned LEB128: the trace file's signed numbers. */
static inline int64_t bytes_zigzag(struct bytes *b)
{
    uint64_t v = bytes_uleb(b);

    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* A NUL-terminated string in place, or NULL when there is no NUL before the end. */
static inline const char *bytes_cstr(struct bytes *b)
{
    const uint8_t *nul = b->bad ? NULL : memchr(b->pos, 0, (size_t)(b->end - b->pos));
    const char *s = (const char *)b->pos;

    if (!nul) {
        b->bad = true;
        return NULL;
    }
    b->pos = nul + 1;
    return s;
}

#endif
