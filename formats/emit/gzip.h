/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a gzip file piece by piece. Its header has neither a time nor a name, so that the same contents give the same
 * bytes.
 */
#ifndef FORMATS_EMIT_GZIP_H
#define FORMATS_EMIT_GZIP_H

#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include "formats/base/err.h"

struct gzip {
    FILE *out; /* borrowed */
    z_stream stream;
    uint8_t *block; /* of what was compressed; NULL: not begun */
};

/* {0} is a file that was not begun; deinit frees what begin took, also after an error. */
struct error *gzip_begin(struct gzip *g, FILE *out);
struct error *gzip_put(struct gzip *g, const void *data, size_t len_bytes);
/* Writes what is left. The caller checks and closes `out`. */
struct error *gzip_end(struct gzip *g);
void gzip_deinit(struct gzip *g);

#endif
