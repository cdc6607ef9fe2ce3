/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of Protocol Buffers, byte by byte. */
#include "tests/unit/test.h"

#include <string.h>

#include "formats/emit/protobuf.h"

static void expect(struct buf *got, const char *bytes, size_t len_bytes)
{
    assert_false(got->bad);
    assert_int_equal(got->len_bytes, len_bytes);
    assert_memory_equal(got->data, bytes, len_bytes);
    buf_deinit(got);
}
#define EXPECT(got, bytes) expect(got, bytes, sizeof(bytes) - 1)

/* A varint of each length, at both ends. */
TEST(varint)
{
    for (unsigned len = 1; len <= 10; len++) {
        uint64_t most = len == 10 ? UINT64_MAX : (UINT64_C(1) << 7 * len) - 1, least = len == 1 ? 1 : UINT64_C(1) << 7 * (len - 1);
        const uint64_t values[] = {least, most};
        for (size_t i = 0; i < 2; i++) {
            struct buf out = {0};
            uint64_t back = 0;
            protobuf_put_u64(&out, 1, values[i]);
            assert_int_equal(out.len_bytes, 1 + len);
            assert_int_equal(out.data[0], 0x08);
            for (unsigned k = 0; k < len; k++) {
                back |= (uint64_t)(out.data[1 + k] & 0x7f) << 7 * k;
                assert_int_equal(out.data[1 + k] >> 7, k + 1 < len);
            }
            assert_true(back == values[i]);
            buf_deinit(&out);
        }
    }
}

TEST(numbers)
{
    struct buf out = {0};

    protobuf_put_u64(&out, 1, 150); /* the example of the specification */
    EXPECT(&out, "\x08\x96\x01");
    protobuf_put_i64(&out, 2, -1);
    EXPECT(&out, "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    protobuf_put_i64(&out, 2, INT64_MIN);
    EXPECT(&out, "\x10\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01");
    protobuf_put_u64(&out, 15, 1);
    protobuf_put_u64(&out, 16, 1); /* keys of one byte, of two, and the largest */
    protobuf_put_u64(&out, (1 << 29) - 1, 1);
    EXPECT(&out, "\x78\x01\x80\x01\x01\xf8\xff\xff\xff\x0f\x01");
}

/* A number that is 0 is not written; empty bytes, which may be an element of a list, are. */
TEST(nothing)
{
    struct buf out = {0}, empty = {0};

    protobuf_put_u64(&out, 1, 0);
    protobuf_put_i64(&out, 1, 0);
    protobuf_put_packed(&out, 1, NULL, 0);
    assert_int_equal(out.len_bytes, 0);
    protobuf_put_bytes(&out, 6, "", 0);
    protobuf_put_message(&out, 2, &empty);
    EXPECT(&out, "\x32\x00\x12\x00");
}

TEST(packed)
{
    const uint64_t values[] = {0, 1, 300, (uint64_t)-1};
    struct buf out = {0};

    protobuf_put_packed(&out, 4, values, 4);
    EXPECT(&out, "\x22\x0e\x00\x01\xac\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

/* The length of what is inside grows by a byte from 127 to 128, at each depth. */
TEST(nested)
{
    for (size_t len = 120; len < 140; len++) {
        struct buf inner = {0}, outer = {0}, text = {0};
        for (size_t i = 0; i < len; i++)
            buf_put_u8(&text, 'x');
        protobuf_put_bytes(&inner, 1, text.data, len);
        assert_int_equal(inner.len_bytes, 1 + (len < 128 ? 1 : 2) + len);
        protobuf_put_message(&outer, 2, &inner);
        size_t head = 1 + (inner.len_bytes < 128 ? 1 : 2);
        assert_int_equal(outer.len_bytes, head + inner.len_bytes);
        assert_memory_equal(outer.data + head, inner.data, inner.len_bytes);
        buf_deinit(&inner);
        buf_deinit(&outer);
        buf_deinit(&text);
    }
}

TEST(bad_message_is_bad)
{
    struct buf out = {0}, bad = {.bad = true};

    protobuf_put_message(&out, 1, &bad);
    assert_true(out.bad);
    buf_deinit(&out);
}
