/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pprof profile as text, a line an entry, by a decoder of its own: it shares nothing with the encoder. Fails the test
 * where the bytes are no profile, an id is out of order, or a number stands for no entry of its table.
 */
#ifndef TESTS_UNIT_PPROF_TEXT_H
#define TESTS_UNIT_PPROF_TEXT_H

#include "tests/unit/test.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "formats/base/buf.h"
#include "formats/base/utf8.h"

/* What is left of a message. */
struct pprof_bytes {
    const uint8_t *data;
    size_t len_bytes;
};

struct pprof_field {
    uint64_t number, value;    /* value: of a varint */
    struct pprof_bytes inside; /* of a field with a length */
};

static inline uint64_t pprof_varint(struct pprof_bytes *b)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        assert_true(b->len_bytes && shift < 64);
        uint8_t byte = *b->data++;
        b->len_bytes--;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

static inline bool pprof_next(struct pprof_bytes *b, struct pprof_field *f)
{
    if (!b->len_bytes)
        return false;
    uint64_t key = pprof_varint(b);
    *f = (struct pprof_field){.number = key >> 3};
    assert_true((key & 7) == 0 || (key & 7) == 2);
    f->value = pprof_varint(b);
    if (key & 7) {
        assert_true(f->value <= b->len_bytes);
        f->inside = (struct pprof_bytes){b->data, f->value};
        b->data += f->value;
        b->len_bytes -= f->value;
    }
    return true;
}

/* The n-th field of that number, from 0. */
static inline bool pprof_find(struct pprof_bytes message, uint64_t number, uint64_t n, struct pprof_field *f)
{
    while (pprof_next(&message, f)) {
        if (f->number == number && !n--)
            return true;
    }
    *f = (struct pprof_field){0};
    return false;
}

static inline uint64_t pprof_value(struct pprof_bytes message, uint64_t number)
{
    struct pprof_field f;

    pprof_find(message, number, 0, &f);
    return f.value;
}

/* Appends a string by its number. */
static inline void pprof_put_string(struct pprof_bytes profile, uint64_t number, struct buf *out)
{
    struct pprof_field f;

    assert_true(pprof_find(profile, 6, number, &f));
    for (size_t i = 0, n; i < f.inside.len_bytes; i += n) {
        uint32_t code;
        n = utf8_decode(f.inside.data + i, f.inside.len_bytes - i, &code);
        assert_true(n && !utf8_is_control(code));
    }
    buf_put(out, f.inside.data, f.inside.len_bytes);
}

/* Appends a name, or a type as "name/unit". */
static inline void pprof_put_type(struct pprof_bytes profile, struct pprof_bytes type, struct buf *out)
{
    pprof_put_string(profile, pprof_value(type, 1), out);
    buf_put_u8(out, '/');
    pprof_put_string(profile, pprof_value(type, 2), out);
}

static inline void pprof_put_label(struct pprof_bytes profile, struct pprof_bytes label, struct buf *out)
{
    buf_put_u8(out, ' ');
    pprof_put_string(profile, pprof_value(label, 1), out);
    buf_put_u8(out, '=');
    if (pprof_value(label, 2))
        pprof_put_string(profile, pprof_value(label, 2), out);
    else
        buf_printf(out, "%" PRIu64, pprof_value(label, 3));
    if (pprof_value(label, 4)) {
        buf_put_u8(out, ' ');
        pprof_put_string(profile, pprof_value(label, 4), out);
    }
}

/* "sample 3 2 1: 2 20000000 process=x" */
static inline void pprof_put_sample(struct pprof_bytes profile, struct pprof_bytes sample, struct buf *out)
{
    struct pprof_field f, entry;

    assert_true(pprof_find(sample, 1, 0, &f));
    while (f.inside.len_bytes) {
        uint64_t id = pprof_varint(&f.inside);
        assert_true(id && pprof_find(profile, 4, id - 1, &entry));
        buf_printf(out, " %" PRIu64, id);
    }
    buf_put_u8(out, ':');
    assert_true(pprof_find(sample, 2, 0, &f));
    for (uint64_t i = 0; f.inside.len_bytes; i++) {
        assert_true(pprof_find(profile, 1, i, &entry));
        buf_printf(out, " %" PRIu64, pprof_varint(&f.inside));
    }
    for (uint64_t i = 0; pprof_find(sample, 3, i, &f); i++)
        pprof_put_label(profile, f.inside, out);
}

/* "mapping 1 /usr/bin/python3.12 1000-3000 @1000 abcd FFLI", the letters for what it has */
static inline void pprof_put_mapping(struct pprof_bytes profile, struct pprof_bytes m, struct buf *out)
{
    buf_put_u8(out, ' ');
    pprof_put_string(profile, pprof_value(m, 5), out);
    if (pprof_value(m, 3))
        buf_printf(out, " %" PRIx64 "-%" PRIx64 " @%" PRIx64, pprof_value(m, 2), pprof_value(m, 3), pprof_value(m, 4));
    buf_put_u8(out, ' ');
    pprof_put_string(profile, pprof_value(m, 6), out);
    buf_put_u8(out, ' ');
    for (uint64_t i = 0; i < 4; i++)
        buf_put_u8(out, pprof_value(m, 7 + i) ? (uint8_t)"FFLI"[i] : '-');
}

/* "location 1 M1 1234 function 2:42:9" */
static inline void pprof_put_location(struct pprof_bytes profile, struct pprof_bytes location, struct buf *out)
{
    struct pprof_field f, entry;

    assert_true(pprof_find(profile, 3, pprof_value(location, 2) - 1, &entry));
    buf_printf(out, " M%" PRIu64 " %" PRIx64, pprof_value(location, 2), pprof_value(location, 3));
    for (uint64_t i = 0; pprof_find(location, 4, i, &f); i++) {
        assert_true(pprof_find(profile, 5, pprof_value(f.inside, 1) - 1, &entry));
        buf_printf(out, " F%" PRIu64 ":%" PRIu64 ":%" PRIu64, pprof_value(f.inside, 1), pprof_value(f.inside, 2),
                   pprof_value(f.inside, 3));
    }
}

static inline void pprof_put_function(struct pprof_bytes profile, struct pprof_bytes function, struct buf *out)
{
    buf_put_u8(out, ' ');
    pprof_put_string(profile, pprof_value(function, 2), out);
    assert_true(!pprof_value(function, 3));
    buf_put_u8(out, ' ');
    pprof_put_string(profile, pprof_value(function, 4), out);
    buf_printf(out, ":%" PRIu64, pprof_value(function, 5));
}

static inline void pprof_put_list(struct pprof_bytes profile, uint64_t number, const char *name, bool has_id,
                                  void (*put)(struct pprof_bytes, struct pprof_bytes, struct buf *), struct buf *out)
{
    struct pprof_field f;

    for (uint64_t i = 0; pprof_find(profile, number, i, &f); i++) {
        buf_put_str(out, name);
        if (has_id) {
            assert_true(pprof_value(f.inside, 1) == i + 1);
            buf_printf(out, " %" PRIu64, i + 1);
        }
        put(profile, f.inside, out);
        buf_put_u8(out, '\n');
    }
}

/* The whole profile; the caller deinits `out`. */
static inline void pprof_put_profile(struct pprof_bytes profile, struct buf *out)
{
    struct pprof_field f;

    assert_true(pprof_find(profile, 6, 0, &f) && !f.inside.len_bytes);
    pprof_put_list(profile, 1, "type ", false, pprof_put_type, out);
    pprof_put_list(profile, 11, "period ", false, pprof_put_type, out);
    buf_put_str(out, "default ");
    pprof_put_string(profile, pprof_value(profile, 14), out);
    buf_printf(out, "\nevery %" PRIu64 " from %" PRIu64 " for %" PRIu64 "\n", pprof_value(profile, 12),
               pprof_value(profile, 9), pprof_value(profile, 10));
    pprof_put_list(profile, 2, "sample", false, pprof_put_sample, out);
    pprof_put_list(profile, 3, "mapping", true, pprof_put_mapping, out);
    pprof_put_list(profile, 4, "location", true, pprof_put_location, out);
    pprof_put_list(profile, 5, "function", true, pprof_put_function, out);
    for (uint64_t i = 0; pprof_find(profile, 13, i, &f); i++) {
        buf_put_str(out, "comment ");
        pprof_put_string(profile, f.value, out);
        buf_put_u8(out, '\n');
    }
}

/* What is in a gzip file, whose header must have no time and no name; the caller deinits it. */
static inline struct buf pprof_unzip(const char *bytes, size_t len_bytes)
{
    struct buf out = {0};
    z_stream z = {.next_in = (Bytef *)bytes, .avail_in = (uInt)len_bytes};
    int result;

    assert_true(len_bytes > 10 && !memcmp(bytes, "\x1f\x8b\x08\0\0\0\0\0", 8));
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    do {
        z.next_out = buf_reserve(&out, 4096);
        z.avail_out = 4096;
        result = inflate(&z, Z_NO_FLUSH);
        out.len_bytes += 4096 - z.avail_out;
    } while (result == Z_OK);
    assert_int_equal(result, Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    inflateEnd(&z);
    return out;
}

#endif
