/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire format of Protocol Buffers, for messages that are written field by field: each field is a key, which holds its
 * number and how the value is encoded, and the value. A message inside a message is a field of bytes, so it is encoded
 * into a buffer of its own first. (protobuf.dev/programming-guides/encoding)
 *
 * A reader takes a number that is not there for 0, as proto3 wants it; so a 0 is not written. An element of a repeated
 * field always is. Readers accept fields in any order; elements of a repeated field keep theirs.
 *
 * All functions append to `out`, which becomes bad when memory runs out (formats/base/buf.h).
 */
#ifndef FORMATS_EMIT_PROTOBUF_H
#define FORMATS_EMIT_PROTOBUF_H

#include "formats/base/buf.h"

/* uint64, uint32, bool, enum. */
void protobuf_put_u64(struct buf *out, uint32_t field, uint64_t value);
/* int64, int32: a negative number takes ten bytes. */
void protobuf_put_i64(struct buf *out, uint32_t field, int64_t value);
/* bytes or string, also an empty one. A string must be valid UTF-8. */
void protobuf_put_bytes(struct buf *out, uint32_t field, const void *data, size_t len_bytes);
/* A message, also an empty one. Makes `out` bad if the message is. */
void protobuf_put_message(struct buf *out, uint32_t field, const struct buf *message);
/* A repeated field of integers, packed. Negative ones are passed as uint64_t. Without elements there is no field. */
void protobuf_put_packed(struct buf *out, uint32_t field, const uint64_t *values, size_t count);

#endif
