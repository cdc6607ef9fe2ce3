/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs and unpacks the headers of the file and of a block, field by field, so that
 * the file does not depend on how a compiler lays out a struct.
 */
#define XXH_INLINE_ALL
#include "formats/trace/block.h"

#include <string.h>
#include <xxhash.h>

#include "formats/base/bytes.h"

static uint8_t *put(uint8_t *p, const void *value, size_t len_bytes)
{
    memcpy(p, value, len_bytes);
    return p + len_bytes;
}
#define PUT(p, field) ((p) = put((p), &(field), sizeof(field)))

static void seal(uint8_t *data, const char *magic, size_t len_bytes)
{
    uint64_t checksum = XXH3_64bits(data + TRACE_CHECKED_FROM, len_bytes - TRACE_CHECKED_FROM);

    memcpy(data, magic, TRACE_MAGIC_BYTES);
    memcpy(data + TRACE_MAGIC_BYTES, &checksum, sizeof checksum);
}

bool trace_checksum_good(const uint8_t *data, size_t len_bytes)
{
    uint64_t checksum;

    memcpy(&checksum, data + TRACE_MAGIC_BYTES, sizeof checksum);
    return checksum == XXH3_64bits(data + TRACE_CHECKED_FROM, len_bytes - TRACE_CHECKED_FROM);
}

void trace_file_header_pack(const struct trace_file_header *h, uint8_t *out)
{
    uint8_t *p = out + TRACE_CHECKED_FROM;

    PUT(p, h->version);
    PUT(p, h->least_reader);
    PUT(p, h->header_len_bytes);
    PUT(p, h->reserved);
    seal(out, TRACE_FILE_MAGIC, TRACE_FILE_HEADER_BYTES);
}

struct trace_file_header trace_file_header_unpack(const uint8_t *data)
{
    struct bytes b = bytes_of(data + TRACE_CHECKED_FROM, TRACE_FILE_HEADER_BYTES - TRACE_CHECKED_FROM);
    struct trace_file_header h;

    h.version = bytes_u16(&b);
    h.least_reader = bytes_u16(&b);
    h.header_len_bytes = bytes_u16(&b);
    h.reserved = bytes_u16(&b);
    return h;
}

void trace_block_header_pack(const struct trace_block_header *h, uint8_t *out)
{
    uint8_t *p = out + TRACE_CHECKED_FROM;

    PUT(p, h->codec);
    PUT(p, h->flags);
    PUT(p, h->reserved_1);
    PUT(p, h->sequence);
    PUT(p, h->epoch);
    PUT(p, h->stored_len_bytes);
    PUT(p, h->raw_len_bytes);
    PUT(p, h->sample_count);
    PUT(p, h->reserved_2);
    seal(out, TRACE_BLOCK_MAGIC, TRACE_BLOCK_HEADER_BYTES + (size_t)h->stored_len_bytes);
}

struct trace_block_header trace_block_header_unpack(const uint8_t *data)
{
    struct bytes b = bytes_of(data + TRACE_CHECKED_FROM, TRACE_BLOCK_HEADER_BYTES - TRACE_CHECKED_FROM);
    struct trace_block_header h;

    h.codec = bytes_u8(&b);
    h.flags = bytes_u8(&b);
    h.reserved_1 = bytes_u16(&b);
    h.sequence = bytes_u32(&b);
    h.epoch = bytes_u64(&b);
    h.stored_len_bytes = bytes_u32(&b);
    h.raw_len_bytes = bytes_u32(&b);
    h.sample_count = bytes_u32(&b);
    h.reserved_2 = bytes_u32(&b);
    return h;
}
