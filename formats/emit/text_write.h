/* SPDX-License-Identifier: Apache-2.0 */
/* Writes text that was put together in a buffer: a call of stdio locks the stream, so many small pieces are slow. */
#ifndef FORMATS_EMIT_TEXT_WRITE_H
#define FORMATS_EMIT_TEXT_WRITE_H

#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"

/* Writes and frees the text. An error if memory ran out while it was made; a failed write is found by whoever closes the file. */
static inline struct error *text_write(struct buf *text, FILE *out)
{
    struct error *err = text->bad ? error_no_memory() : NULL;

    if (!err && text->len_bytes)
        fwrite(text->data, 1, text->len_bytes, out);
    buf_deinit(text);
    return err;
}

enum { TEXT_PIECE_BYTES = 1 << 15 };

/* Writes and empties the text once it is longer than a piece. What a caller appends meanwhile it may hold back as well. */
static inline void text_write_piece(struct buf *text, FILE *out)
{
    if (text->len_bytes < TEXT_PIECE_BYTES)
        return;
    fwrite(text->data, 1, text->len_bytes, out);
    buf_clear(text);
}

#endif
