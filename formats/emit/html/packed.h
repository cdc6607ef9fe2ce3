/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a page: bytes that are compressed as they come (a zlib stream, which browsers unpack by themselves), kept in
 * memory or, what grows with the samples, in a temporary file, and written as base64 in an element that is no markup and no script. Nothing that a trace says can end it.
 */
#ifndef FORMATS_EMIT_HTML_PACKED_H
#define FORMATS_EMIT_HTML_PACKED_H

#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/limits.h"
#include "formats/emit/spool.h"

/* {.limits = …, .spool = …} is empty. The compressor, of some 100 KB, is made when there is enough to compress. */
struct html_packed {
    struct limits *limits; /* borrowed; NULL: none */
    struct spool *spool;   /* borrowed: where most of it is put when it is long; NULL: nowhere */
    struct spool_list stored;
    struct buf plain;      /* what was not given to the compressor yet */
    struct buf packed;
    z_stream *stream;        /* NULL: not begun, or ended */
    uint64_t taken_bytes;    /* from the limits */
};

void html_packed_deinit(struct html_packed *p);
struct error *html_packed_put(struct html_packed *p, const void *data, size_t len_bytes);
/* A number as a little-endian base-128 varint (LEB128). */
struct error *html_packed_put_number(struct html_packed *p, uint64_t number);
/*
 * Ends the stream, and writes it as an element, once. `id` is ours; `count` is how many things the data holds. The caller
 * closes `out`, and checks that.
 */
struct error *html_packed_write(struct html_packed *p, const char *id, uint64_t count, FILE *out);

#endif
