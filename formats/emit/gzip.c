/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 1 << 15 };
enum { GZIP_WINDOW_BITS = 15 + 16 /* 16 asks zlib for gzip's header */, MEMORY_LEVEL = 8 /* zlib's default */ };

struct error *gzip_begin(struct gzip *g, FILE *out)
{
    g->out = out;
    g->stream = (z_stream){0};
    g->block = malloc(BLOCK_BYTES);
    if (!g->block)
        return error_no_memory();
    if (deflateInit2(&g->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return NULL;
    free(g->block);
    g->block = NULL;
    return error_no_memory();
}

/* Compresses all input there is, and writes every full block; with Z_FINISH the last one, too. */
static struct error *compress_input(struct gzip *g, int flush)
{
    do {
        g->stream.next_out = g->block;
        g->stream.avail_out = BLOCK_BYTES;
        deflate(&g->stream, flush); /* cannot fail: the stream is valid, and there is room */
        size_t len = BLOCK_BYTES - g->stream.avail_out;
        if (len && fwrite(g->block, len, 1, g->out) != 1)
            return error_os(errno, "cannot write the profile");
    } while (!g->stream.avail_out);
    return NULL;
}

struct error *gzip_put(struct gzip *g, const void *data, size_t len_bytes)
{
    const uint8_t *from = data;

    while (len_bytes) {
        uInt part = len_bytes < UINT_MAX ? (uInt)len_bytes : UINT_MAX;
        g->stream.next_in = (Bytef *)from;
        g->stream.avail_in = part;
        TRY(compress_input(g, Z_NO_FLUSH));
        from += part;
        len_bytes -= part;
    }
    return NULL;
}

struct error *gzip_end(struct gzip *g)
{
    return compress_input(g, Z_FINISH);
}

void gzip_deinit(struct gzip *g)
{
    if (g->block)
        deflateEnd(&g->stream);
    free(g->block);
    g->block = NULL;
}
