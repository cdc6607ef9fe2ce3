/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lower half of the trace writer: it collects records into blocks, and compresses, checksums and writes the
 * blocks. writer.c decides which records there are.
 *
 * The state is that of the whole writer. The first error is kept in the writer; after it the functions do nothing.
 */
#ifndef FORMATS_TRACE_WRITER_BLOCKS_H
#define FORMATS_TRACE_WRITER_BLOCKS_H

#include <zstd.h>

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/trace/codec.h"
#include "formats/trace/trace.h"

/* The samples of one event that wait for the block to be written. */
struct sample_batch {
    struct buf data;
    uint64_t first_time_ns, last_time_ns;
    uint64_t grain_ns; /* of the times of the event's samples: a power of two; 0: they are exact. Until the epoch ends */
    uint32_t count;
};

struct trace_writer {
    int fd;
    char *path;
    struct trace_writer_options options;

    struct error *error; /* until trace_writer_error() returns it */
    bool failed, finished, full, epoch_full, held, closing;

    struct trace_ids ids;
    struct intern interned; /* keys: type and payload of interned records */
    VEC(uint32_t) interned_ids; /* trace id by intern id */
    struct map stacks;      /* parent stack << 32 | frame -> stack */
    VEC(uint64_t) frames;   /* scratch: the frames of a new stack */

    struct buf scratch;     /* one record: type, payload */
    struct buf samples;     /* the payload of a SAMPLES record */
    struct buf block;       /* records that are not yet written */
    struct buf stored;      /* header and payload as written */
    VEC(struct sample_batch) batches; /* by event id - 1 */
    size_t batches_bytes;
    /* No time is rounded to one before `past_ns`: of records, and of samples of other events than the last one's. */
    uint64_t past_ns, newest_sample_ns;
    uint32_t last_event;
    uint32_t block_samples;
    size_t block_sample_bytes; /* of the block, those that are samples */
    ZSTD_CCtx *zstd;

    uint64_t epoch, epoch_time_ns, epoch_raw_bytes;
    uint64_t epoch_sample_bytes; /* of the epoch's records, those that are samples */
    uint32_t sequence;
    uint64_t written_bytes, written_count, sample_count;
};

/* Keeps the writer's first error and destroys later ones. Takes `err`. */
void writer_fail(struct trace_writer *w, struct error *err);
/* The same for a record that breaks a rule of the format. */
void writer_fail_rule(struct trace_writer *w, const struct trace_fault *fault);
/* Writes bytes to the file at once, past the block. */
void writer_write(struct trace_writer *w, const uint8_t *data, size_t len_bytes);
/* Bytes, not yet compressed, that wait for the block to be written: records and batches of samples. */
size_t writer_pending_bytes(const struct trace_writer *w);
/* Adds an encoded record to the block. Call writer_make_room() first. */
void writer_append(struct trace_writer *w, enum trace_type type, const uint8_t *payload, size_t len_bytes);
/* Writes the block with these flags. Without flags an empty block is not written. */
void writer_flush(struct trace_writer *w, uint8_t flags);
/* Whether a record of this length might not fit into the file or the epoch. */
bool writer_may_refuse(const struct trace_writer *w, size_t len_bytes);
/*
 * Makes room in the block for `len_bytes` more, and writes the block first if it would get too long. False after an
 * error, or when they do not fit into the file (then w->full is set) or the epoch (w->epoch_full).
 */
bool writer_make_room(struct trace_writer *w, size_t len_bytes);
/* Whether nothing more is taken, at least for now: after an error, when the file or the epoch is full, or held. */
static inline bool writer_is_shut(const struct trace_writer *w)
{
    return w->failed || w->full || w->epoch_full || w->held;
}

#endif
