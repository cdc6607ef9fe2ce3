/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/html/packed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/base64.h"

enum {
    PLAIN_BYTES = 4096, /* compressed at once */
    BLOCK_BYTES = 1 << 14,
    KEPT_BYTES = 1 << 16, /* in memory, if there is a temporary file */
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
    spool_list_deinit(&p->stored);
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

/* Moves what is in memory to the temporary file, but for less than a run. */
static struct error *store(struct html_packed *p)
{
    size_t len = p->packed.len_bytes / sizeof(struct spool_run) * sizeof(struct spool_run), rest = p->packed.len_bytes - len;

    if (!p->stored.run_cap && !take(p, SPOOL_BLOCK_RUNS * sizeof(struct spool_run)))
        return error_no_memory();
    TRY(spool_add_bytes(p->spool, &p->stored, p->packed.data, len));
    memmove(p->packed.data, p->packed.data + len, rest);
    p->packed.len_bytes = rest;
    limits_give(p->limits, len);
    p->taken_bytes -= len;
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
    return p->spool && p->packed.len_bytes >= KEPT_BYTES ? store(p) : NULL;
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

/* Text of base64 on its way out: whole groups of three bytes at a time, as one text has no gaps. */
struct encoder {
    FILE *out;
    size_t len_bytes;
    uint8_t data[3 * BASE64_THREES];
};

static struct error *write_encoded(struct encoder *e)
{
    char text[4 * BASE64_THREES];
    size_t len = e->len_bytes ? base64_encode(e->data, e->len_bytes, text) : 0;

    e->len_bytes = 0;
    return len && fwrite(text, len, 1, e->out) != 1 ? error_os(errno, "cannot write the page") : NULL;
}

static struct error *encode(struct encoder *e, const void *data, size_t len_bytes)
{
    const uint8_t *from = data;

    while (len_bytes) {
        size_t room = sizeof e->data - e->len_bytes, part = len_bytes < room ? len_bytes : room;
        memcpy(e->data + e->len_bytes, from, part);
        e->len_bytes += part;
        from += part;
        len_bytes -= part;
        if (e->len_bytes == sizeof e->data)
            TRY(write_encoded(e));
    }
    return NULL;
}

static struct error *encode_stored(struct encoder *e, const struct html_packed *p)
{
    struct spool_reader reader = {.spool = p->spool, .list = &p->stored};
    const struct spool_run *run;
    struct error *err;

    while (!(err = spool_next(&reader, &run)) && run && !(err = encode(e, run, sizeof *run)))
        ;
    spool_reader_deinit(&reader);
    return err;
}

struct error *html_packed_write(struct html_packed *p, const char *id, uint64_t count, FILE *out)
{
    struct encoder e = {.out = out};

    TRY(compress_plain(p, Z_FINISH));
    end_stream(p);
    fprintf(out, "<script type=\"text/plain\" id=\"%s\" data-count=\"%" PRIu64 "\">", id, count);
    TRY(encode_stored(&e, p));
    TRY(encode(&e, p->packed.data, p->packed.len_bytes));
    TRY(write_encoded(&e));
    fputs("</script>\n", out);
    return NULL;
}
