/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is this a page whose scripts can read its data: zlib streams in base64, head and strings JSON, every stack's parent
 * before it, every number of a sample of something that there is? Traps if not.
 */
#ifndef TESTS_FUZZ_CHECK_PAGE_H
#define TESTS_FUZZ_CHECK_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "formats/base/buf.h"

static inline void page_require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static inline uint32_t page_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(digits, c);

    page_require(c && at);
    return (uint32_t)(at - digits);
}

static inline void page_base64(const char *s, size_t len, struct buf *out)
{
    page_require(len % 4 == 0);
    for (size_t i = 0; i < len; i += 4) {
        size_t count = s[i + 3] != '=' ? 3 : s[i + 2] != '=' ? 2 : 1;
        uint32_t bits = 0;
        page_require(count == 3 || i + 4 == len);
        for (size_t k = 0; k < 4; k++)
            bits = bits << 6 | (k <= count ? page_digit(s[i + k]) : 0);
        for (size_t k = 0; k < count; k++)
            buf_put_u8(out, (uint8_t)(bits >> (16 - 8 * k)));
    }
}

static inline void page_inflate(const struct buf *packed, struct buf *out)
{
    z_stream z = {.next_in = packed->data, .avail_in = (uInt)packed->len_bytes};
    int result = Z_OK;

    page_require(inflateInit(&z) == Z_OK);
    while (result == Z_OK) {
        uint8_t *to = buf_reserve(out, 65536);
        page_require(to != NULL);
        z.next_out = to;
        z.avail_out = 65536;
        result = inflate(&z, Z_NO_FLUSH);
        out->len_bytes += 65536 - z.avail_out;
    }
    page_require(result == Z_STREAM_END && !z.avail_in);
    inflateEnd(&z);
}

/* What an element of the page holds; false: there is no such element. *count: what its attribute says. */
static inline bool page_element(const struct buf *page, const char *id, struct buf *out, size_t *count)
{
    char start[80];
    struct buf packed = {0};

    snprintf(start, sizeof start, "<script type=\"text/plain\" id=\"%s\" data-count=\"", id);
    const char *at = strstr((const char *)page->data, start);
    if (!at)
        return false;
    *count = strtoull(at + strlen(start), NULL, 10);
    at = strchr(at, '>') + 1;
    page_base64(at, strcspn(at, "<"), &packed);
    page_inflate(&packed, out);
    buf_deinit(&packed);
    return true;
}

/* JSON of this type, with so many elements if it is an array. */
static inline void page_json(const struct buf *page, const char *id, json_type type, size_t *count)
{
    struct buf text = {0};

    page_require(page_element(page, id, &text, count));
    json_t *json = json_loadb((const char *)text.data, text.len_bytes, JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, NULL);
    page_require(json && json_typeof(json) == type && (type != JSON_ARRAY || json_array_size(json) == *count));
    json_decref(json);
    buf_deinit(&text);
}

static inline uint64_t page_varint(const struct buf *b, size_t *at)
{
    uint64_t value = 0;

    for (int shift = 0;; shift += 7) {
        page_require(*at < b->len_bytes && shift < 56);
        uint8_t byte = b->data[(*at)++];
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            break;
    }
    page_require(value <= UINT64_C(1) << 53);
    return value;
}

/* Columns of numbers, one after the other, of which those of a column stay below its limit. 0: any number. */
static inline size_t page_columns(const struct buf *page, const char *id, size_t columns, const size_t *limits)
{
    struct buf data = {0};
    size_t count = 0, at = 0;

    if (page_element(page, id, &data, &count)) {
        for (size_t c = 0; c < columns; c++) {
            for (size_t i = 0; i < count; i++) {
                uint64_t value = page_varint(&data, &at);
                page_require(!limits[c] || value < limits[c]);
            }
        }
        page_require(at == data.len_bytes);
    }
    buf_deinit(&data);
    return count;
}

static inline void page_stacks(const struct buf *page, size_t frames, size_t *count)
{
    struct buf data = {0};
    size_t at = 0;

    page_require(page_element(page, "stacks", &data, count));
    for (size_t i = 0; i < *count; i++)
        page_require(page_varint(&data, &at) <= i);
    for (size_t i = 0; i < *count; i++)
        page_require(page_varint(&data, &at) < frames);
    page_require(at == data.len_bytes);
    buf_deinit(&data);
}

/* `page` is a string. */
static inline void page_check(const struct buf *page)
{
    static const char *const samples[] = {"sample-thread", "sample-event", "sample-time",    "sample-value",
                                          "sample-labels", "sample-flags", "sample-capture", "sample-cpu"};
    size_t strings, stacks, heads;

    page_json(page, "head", JSON_OBJECT, &heads);
    page_json(page, "strings", JSON_ARRAY, &strings);
    size_t frames = page_columns(page, "frames", 13, (const size_t[]){0, strings, strings, strings, strings, strings, 0, 0, 0, 0, 2,
                                                                      strings, strings});
    page_stacks(page, frames, &stacks);
    size_t count = page_columns(page, "sample-stack", 1, (const size_t[]){stacks + 1});
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        size_t of = page_columns(page, samples[i], 1, (const size_t[]){0});
        page_require(!of || !count || of == count);
    }
}

#endif
