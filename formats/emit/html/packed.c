/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/html/packed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "formats/base/base64.h"

enum {
    PLAIN_BYTES = 4096, /* compressed at once */
    BLOCK_BYTES = 1 << 14,
    BASE64_THREES = 1024, /* written at once */
    LEVEL = 6,
    WINDOW_BITS = 13,
    MEMORY_LEVEL = 7,
    STREAM_BYTES = (1 << (WINDOW_BITS + 2)) + (1 << (MEMORY_LEVEL + 9)), /* what zlib says that it takes (zconf.h) */
};

static void end_stream(struct html_packed *p)
{
    if (!p->stream)
        return;
    deflateEnd(p->stream);
    free(p->stream);
    p->stream = NULL;
    limits_give(p->limits, STREAM_BYTES);
    p->taken_bytes -= STREAM_BYTES;
}

void html_packed_deinit(struct html_packed *p)
{
    end_stream(p);
    buf_deinit(&p->plain);
    buf_deinit(&p->packed);
    limits_give(p->limits, p->taken_bytes);
    p->taken_bytes = 0;
}

static bool take(struct html_packed *p, uint64_t len_bytes)
{
    if (!limits_take(p->limits, len_bytes))
        return false;
    p->taken_bytes += len_bytes;
    return true;
}

static struct error *begin_stream(struct html_packed *p)
{
    z_stream *stream = take(p, STREAM_BYTES) ? calloc(1, sizeof *stream) : NULL;

    if (!stream)
        return error_no_memory();
    if (deflateInit2(stream, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(stream);
        return error_no_memory();
    }
    p->stream = stream;
    return NULL;
}

/* Compresses what is in `plain`; with Z_FINISH to the end. */
static struct error *compress_plain(struct html_packed *p, int flush)
{
    if (p->plain.bad)
        return error_no_memory();
    if (!p->stream)
        TRY(begin_stream(p));
    p->stream->next_in = p->plain.data;
    p->stream->avail_in = (uInt)p->plain.len_bytes;
    do {
        uint8_t *to = buf_reserve(&p->packed, BLOCK_BYTES);
        if (!to)
            return error_no_memory();
        p->stream->next_out = to;
        p->stream->avail_out = BLOCK_BYTES;
        deflate(p->stream, flush); /* cannot fail: the stream is valid, and there is room */
        size_t len = BLOCK_BYTES - p->stream->avail_out;
        p->packed.len_bytes += len;
        if (!take(p, len))
            return error_no_memory();
    } while (!p->stream->avail_out);
    buf_clear(&p->plain);
    return NULL;
}

struct error *html_packed_put(struct html_packed *p, const void *data, size_t len_bytes)
{
    const uint8_t *from = data;

    while (len_bytes) {
        size_t room = PLAIN_BYTES - p->plain.len_bytes, part = len_bytes < room ? len_bytes : room;
        buf_put(&p->plain, from, part);
        if (p->plain.bad || p->plain.len_bytes == PLAIN_BYTES)
            TRY(compress_plain(p, Z_NO_FLUSH));
        from += part;
        len_bytes -= part;
    }
    return NULL;
}

struct error *html_packed_put_number(struct html_packed *p, uint64_t number)
{
    buf_put_uleb(&p->plain, number);
    return p->plain.bad || p->plain.len_bytes >= PLAIN_BYTES ? compress_plain(p, Z_NO_FLUSH) : NULL;
}

static struct error *write_base64(const uint8_t *data, size_t len_bytes, FILE *out)
{
    char text[4 * BASE64_THREES];

    for (size_t i = 0; i < len_bytes; i += 3 * BASE64_THREES) {
        size_t left = len_bytes - i, part = left < 3 * BASE64_THREES ? left : 3 * BASE64_THREES;
        if (fwrite(text, base64_encode(data + i, part, text), 1, out) != 1)
            return error_os(errno, "cannot write the page");
    }
    return NULL;
}

struct error *html_packed_write(struct html_packed *p, const char *id, uint64_t count, FILE *out)
{
    TRY(compress_plain(p, Z_FINISH));
    end_stream(p);
    fprintf(out, "<script type=\"text/plain\" id=\"%s\" data-count=\"%" PRIu64 "\">", id, count);
    TRY(write_base64(p->packed.data, p->packed.len_bytes, out));
    fputs("</script>\n", out);
    return NULL;
}
