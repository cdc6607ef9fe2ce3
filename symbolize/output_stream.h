/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that write to files below a common ceiling: a short trace may describe samples whose stacks fill a disk when
 * they are written out. A stream asks for its file's descriptor only when it has something to write, so that many can be
 * open with few descriptors.
 */
#ifndef SYMBOLIZE_OUTPUT_STREAM_H
#define SYMBOLIZE_OUTPUT_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/job_text.h"

/* What all streams of an output may write together. */
struct output_limit {
    uint64_t max_bytes, used_bytes;
    bool by_size; /* they go by the size of the input */
    bool reached; /* a stream wanted to write more: nothing is written from then on */
};

/* The owner sets the members before `file`; the struct stays in place while the stream is open. */
struct output_stream {
    struct output_limit *limit; /* borrowed */
    bool binary;                /* not text: where the limit cuts it, no line needs to end */
    struct job_text text;       /* what a CI runner would obey in it is written in another way */
    bool seekable;              /* written at offsets, from 0 on; else where the descriptor stands */
    /* Returns a descriptor to write to, which stays the owner's; -1: errno says why. */
    int (*descriptor)(struct output_stream *stream);
    size_t buffer_bytes;        /* what is written at a time; 0: what stdio has for pipes */
    char *buffer;
    struct buf other;           /* what is written instead of what came */
    FILE *file;                 /* write to this one; NULL when it is closed */
    int os_errno;               /* why a write failed; 0: none did. EFBIG when the limit was reached */
    uint64_t at_bytes, size_bytes; /* where the next write goes; how long the file is */
};

struct error *output_stream_open(struct output_stream *s);
/* Flushes and closes, once or again. False: not all was written, and s->os_errno says why. */
bool output_stream_close(struct output_stream *s);
/* The error of a limit that was reached; else NULL. */
struct error *output_limit_error(const struct output_limit *limit);

#endif
