/* SPDX-License-Identifier: Apache-2.0 */
/* A varint of Protocol Buffers is an unsigned LEB128. */
#include "formats/emit/protobuf.h"

enum protobuf_wire { WIRE_VARINT = 0, WIRE_LENGTH = 2 };

static void put_key(struct buf *out, uint32_t field, enum protobuf_wire type)
{
    buf_put_uleb(out, (uint64_t)field << 3 | type);
}

void protobuf_put_u64(struct buf *out, uint32_t field, uint64_t value)
{
    if (!value)
        return;
    put_key(out, field, WIRE_VARINT);
    buf_put_uleb(out, value);
}

void protobuf_put_i64(struct buf *out, uint32_t field, int64_t value)
{
    protobuf_put_u64(out, field, (uint64_t)value);
}

void protobuf_put_bytes(struct buf *out, uint32_t field, const void *data, size_t len_bytes)
{
    put_key(out, field, WIRE_LENGTH);
    buf_put_uleb(out, len_bytes);
    buf_put(out, data, len_bytes);
}

void protobuf_put_message(struct buf *out, uint32_t field, const struct buf *message)
{
    protobuf_put_bytes(out, field, message->data, message->len_bytes);
    out->bad |= message->bad;
}

static size_t varint_len_bytes(uint64_t value)
{
    size_t len = 1;

    while (value >>= 7)
        len++;
    return len;
}

void protobuf_put_packed(struct buf *out, uint32_t field, const uint64_t *values, size_t count)
{
    size_t len = 0;

    if (!count)
        return;
    for (size_t i = 0; i < count; i++)
        len += varint_len_bytes(values[i]);
    put_key(out, field, WIRE_LENGTH);
    buf_put_uleb(out, len);
    for (size_t i = 0; i < count; i++)
        buf_put_uleb(out, values[i]);
}
