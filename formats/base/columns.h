/* SPDX-License-Identifier: Apache-2.0 */
/* Text in columns of a terminal: how wide it is, and how to make it fit. A character of UTF-8 takes one column. */
#ifndef FORMATS_BASE_COLUMNS_H
#define FORMATS_BASE_COLUMNS_H

#include <stddef.h>

#include "formats/base/buf.h"

/* The columns that a text takes. Bytes that are not UTF-8 count as one each. */
size_t columns_of(const void *text, size_t len_bytes);
/* Appends a text in at most so many columns, at least 1: what is too long loses its middle, as its end tells most. */
void columns_cut(struct buf *out, const void *text, size_t len_bytes, size_t columns);
/* The same, but what is too long loses its end. */
void columns_cut_end(struct buf *out, const void *text, size_t len_bytes, size_t columns);
/* The same as columns_cut() for a string, filled up with spaces: exactly so many columns. */
void columns_fill(struct buf *out, const char *text, size_t columns);

#endif
