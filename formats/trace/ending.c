/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/trace/ending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "formats/base/bytes.h"
#include "formats/trace/block.h"
#include "formats/trace/trace.h"

/* Reads up to len_bytes; *got is less at the end of the file. */
static struct error *read_at(int fd, const char *path, uint64_t offset, uint8_t *out, size_t len_bytes, size_t *got)
{
    for (*got = 0; *got < len_bytes;) {
        ssize_t n = pread(fd, out + *got, len_bytes - *got, (off_t)(offset + *got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_file(errno, path, "cannot read");
        if (!n)
            break;
        *got += (size_t)n;
    }
    return NULL;
}

/*
 * Stores where the last block begins that block headers lead to, and its length with the header; 0: there is none. The
 * file may end inside it, or go on behind it: then `*to_end` is false.
 */
static struct error *find_last_block(int fd, const char *path, uint64_t *last, size_t *last_len_bytes, bool *to_end)
{
    uint8_t head[TRACE_BLOCK_HEADER_BYTES];
    size_t got, len = 0;

    *to_end = false;
    *last = *last_len_bytes = 0;
    for (uint64_t at = 0;; at += len) {
        TRY(read_at(fd, path, at, head, sizeof head, &got));
        *to_end = !got;
        if (!got)
            return NULL;
        if (got >= TRACE_FILE_HEADER_BYTES && !memcmp(head, TRACE_FILE_MAGIC, TRACE_MAGIC_BYTES)) {
            len = trace_file_header_unpack(head).header_len_bytes;
            *last_len_bytes = 0;
            if (len < TRACE_FILE_HEADER_BYTES || len > TRACE_FILE_HEADER_LIMIT)
                return NULL;
            continue;
        }
        if (got < sizeof head || memcmp(head, TRACE_BLOCK_MAGIC, TRACE_MAGIC_BYTES))
            return NULL;
        len = sizeof head + trace_block_header_unpack(head).stored_len_bytes;
        if (len > sizeof head + TRACE_BLOCK_LIMIT_BYTES)
            return NULL;
        *last = at;
        *last_len_bytes = len;
    }
}

static bool has_end_record(const uint8_t *raw, size_t len_bytes)
{
    struct bytes b = bytes_of(raw, len_bytes);
    bool found = false;

    while (bytes_left(&b)) {
        found |= bytes_uleb(&b) == TRACE_end;
        bytes_skip(&b, bytes_uleb(&b));
    }
    return found && !b.bad;
}

static bool unpack(const struct trace_block_header *h, const uint8_t *stored, uint8_t *raw)
{
    if (h->codec == TRACE_CODEC_ZSTD)
        return ZSTD_decompress(raw, h->raw_len_bytes, stored, h->stored_len_bytes) == h->raw_len_bytes;
    if (h->codec != TRACE_CODEC_RAW || h->raw_len_bytes != h->stored_len_bytes)
        return false;
    memcpy(raw, stored, h->raw_len_bytes);
    return true;
}

/* `block` is whole: its header and its payload. */
static struct error *look_into(const uint8_t *block, size_t len_bytes, bool *out)
{
    struct trace_block_header h = trace_block_header_unpack(block);

    if (!trace_checksum_good(block, len_bytes) || !(h.flags & TRACE_BLOCK_ENDS_EPOCH) || !h.raw_len_bytes ||
        h.raw_len_bytes > TRACE_BLOCK_LIMIT_BYTES)
        return NULL;
    uint8_t *raw = malloc(h.raw_len_bytes);
    if (!raw)
        return error_no_memory();
    *out = unpack(&h, block + TRACE_BLOCK_HEADER_BYTES, raw) && has_end_record(raw, h.raw_len_bytes);
    free(raw);
    return NULL;
}

struct error *trace_has_end(int fd, const char *path, bool *out)
{
    uint64_t at;
    size_t len, got;
    bool to_end;

    *out = false;
    TRY(find_last_block(fd, path, &at, &len, &to_end));
    if (!len || !to_end)
        return NULL;
    uint8_t *block = malloc(len);
    if (!block)
        return error_no_memory();
    struct error *err = read_at(fd, path, at, block, len, &got);
    if (!err && got == len)
        err = look_into(block, len, out);
    free(block);
    return err;
}
