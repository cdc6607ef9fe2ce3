/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a source text the one that ran? The trace may know size and date of the file (struct emit_source_stamp). Without
 * them, or where the date differs, which copies and checkouts change, the frames still contradict a text that is another:
 * a line ran that it does not have, or a function began at a line where it defines none of that name.
 */
#ifndef SYMBOLIZE_SOURCE_SOURCE_MATCH_H
#define SYMBOLIZE_SOURCE_SOURCE_MATCH_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "formats/base/buf.h"
#include "formats/base/limits.h"
#include "formats/emit/emit.h"
#include "formats/emit/source_lines.h"

/* A text, and what is known of the file that ran. */
struct source_match {
    const struct emit_model *model;
    const uint32_t *frames; /* those of the file, by number */
    size_t frame_count;
    const struct emit_source_stamp *stamp; /* NULL: none is known */
    uint64_t size_bytes;                   /* of the file that was found */
    struct timespec modified;
    const struct source_lines *lines; /* of its text */
    struct limits *limits;            /* NULL: there are none */
};

/* Appends the reason (struct emit_source) to `reason`. False: it would be more work than the limits allow. */
bool source_match_judge(const struct source_match *m, enum emit_source_match *out, struct buf *reason);

#endif
