/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects records into blocks and writes them.
 *
 * Records are appended to a block in memory. A full block is compressed, checksummed
 * and written with one write(), so that the file can be read up to its last complete
 * block even if the writer is killed. Samples are collected separately, one batch for
 * each event, and each batch becomes one SAMPLES record at the end of the block, after
 * the records that define what the samples refer to.
 */
#include "formats/trace/writer_blocks.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "formats/trace/block.h"

enum { EPOCH_TAIL_BYTES = 16 << 20, THOROUGH_LIMIT_BYTES = 128 << 10 };

void writer_fail(struct trace_writer *w, struct error *err)
{
    if (w->failed) {
        error_destroy(err);
        return;
    }
    w->failed = true;
    w->error = err;
}

void writer_fail_rule(struct trace_writer *w, const struct trace_fault *fault)
{
    writer_fail(w, error_path(ERROR_USAGE, w->path, "not written: %s", fault->text));
}

void writer_write(struct trace_writer *w, const uint8_t *data, size_t len_bytes)
{
    while (len_bytes) {
        ssize_t n = w->options.write ? w->options.write(w->options.write_ctx, w->fd, data, len_bytes)
                                     : write(w->fd, data, len_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){.fd = w->fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (n < 0) {
            writer_fail(w, error_file(errno, w->path, "cannot write"));
            return;
        }
        data += n;
        len_bytes -= (size_t)n;
        w->written_bytes += (uint64_t)n;
    }
}

size_t writer_pending_bytes(const struct trace_writer *w)
{
    return w->block.len_bytes + w->batches_bytes;
}

/*
 * Samples have little that repeats but three or four bytes here and there, which the fast search overlooks. In blocks
 * of mostly samples the thorough one is worth its time; definitions get smaller by hardly more than a fiftieth.
 */
static size_t compress(struct trace_writer *w, uint8_t *out, size_t most)
{
    static const struct {
        ZSTD_cParameter parameter;
        int value;
    } thorough[] = {{ZSTD_c_strategy, ZSTD_lazy}, {ZSTD_c_minMatch, 3},   {ZSTD_c_searchLog, 3},
                    {ZSTD_c_hashLog, 12},         {ZSTD_c_chainLog, 11}};
    bool is_samples = w->block_sample_bytes >= w->block.len_bytes / 2 && w->block.len_bytes <= THOROUGH_LIMIT_BYTES;

    ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, w->options.zstd_level);
    for (size_t i = 0; is_samples && i < sizeof thorough / sizeof *thorough; i++)
        ZSTD_CCtx_setParameter(w->zstd, thorough[i].parameter, thorough[i].value);
    return ZSTD_compress2(w->zstd, out, most, w->block.data, w->block.len_bytes);
}

uint32_t trace_writer_block_samples(const void *block)
{
    return trace_block_header_unpack(block).sample_count;
}

static void write_block(struct trace_writer *w, uint8_t flags)
{
    const size_t raw_len = w->block.len_bytes;
    struct trace_block_header h = {
        .codec = TRACE_CODEC_ZSTD,
        .flags = flags,
        .sequence = w->sequence,
        .epoch = w->epoch,
        .raw_len_bytes = (uint32_t)raw_len,
        .sample_count = w->block_samples,
    };

    buf_clear(&w->stored);
    uint8_t *out = buf_reserve(&w->stored, TRACE_BLOCK_HEADER_BYTES + raw_len);
    if (w->block.bad || !out) {
        writer_fail(w, error_no_memory());
        return;
    }
    /* The output has less room than the raw bytes need: a block that does not get smaller is stored uncompressed. */
    uint8_t *payload = out + TRACE_BLOCK_HEADER_BYTES;
    size_t n = 0;
    if (raw_len)
        n = compress(w, payload, raw_len - 1);
    if (!raw_len || ZSTD_isError(n)) {
        h.codec = TRACE_CODEC_RAW;
        n = raw_len;
        if (n)
            memcpy(payload, w->block.data, n);
    }
    h.stored_len_bytes = (uint32_t)n;
    trace_block_header_pack(&h, out);
    writer_write(w, out, TRACE_BLOCK_HEADER_BYTES + n);
    if (w->failed)
        return; /* trace_writer_last_block() takes its place */
    buf_clear(&w->block);
    w->epoch_raw_bytes += raw_len;
    w->written_count += w->block_samples;
    w->block_samples = 0;
    w->block_sample_bytes = 0;
    w->sequence++;
}

void writer_append(struct trace_writer *w, enum trace_type type, const uint8_t *payload, size_t len_bytes)
{
    buf_put_uleb(&w->block, type);
    buf_put_uleb(&w->block, len_bytes);
    buf_put(&w->block, payload, len_bytes);
    if (type == TRACE_samples) {
        w->epoch_sample_bytes += len_bytes;
        w->block_sample_bytes += len_bytes;
    }
}

static void append_batches(struct trace_writer *w)
{
    for (size_t i = 0; i < w->batches.count && !w->failed; i++) {
        struct sample_batch *b = &w->batches.data[i];
        if (!b->count)
            continue;
        const struct trace_samples record = {
            .event = (uint32_t)i + 1,
            .time_ns = b->first_time_ns,
            .count = b->count,
            .data = {b->data.data, b->data.len_bytes},
        };
        struct trace_fault fault;
        buf_clear(&w->samples);
        bool good = trace_encode(&w->samples, trace_record_type(TRACE_samples), &record, &w->ids, &fault);
        if (b->data.bad || w->samples.bad)
            writer_fail(w, error_no_memory());
        else if (!good)
            writer_fail_rule(w, &fault);
        else
            writer_append(w, TRACE_samples, w->samples.data, w->samples.len_bytes);
        w->block_samples += b->count;
        buf_clear(&b->data);
        b->count = 0;
    }
    w->batches_bytes = 0;
}

void writer_flush(struct trace_writer *w, uint8_t flags)
{
    if (w->failed || w->finished || (!writer_pending_bytes(w) && !flags))
        return;
    append_batches(w);
    if (w->sequence == 0)
        flags |= TRACE_BLOCK_STARTS_EPOCH;
    if (!w->failed)
        write_block(w, flags);
}

/* True if `len_bytes` more fit into the file even if nothing compresses. May write the block first to find out. */
static bool fits(struct trace_writer *w, size_t len_bytes)
{
    uint64_t most = w->options.max_bytes;

    if (!most)
        return true;
    if (w->written_bytes + TRACE_BLOCK_HEADER_BYTES + writer_pending_bytes(w) + len_bytes > most)
        writer_flush(w, 0);
    w->full |= w->written_bytes + TRACE_BLOCK_HEADER_BYTES + len_bytes + writer_pending_bytes(w) > most;
    return !w->full;
}

/* The epoch's last bytes are kept for the last records of the trace, which trace_writer_closing() announces. */
static bool fits_epoch(const struct trace_writer *w, size_t len_bytes)
{
    size_t most = w->closing ? TRACE_EPOCH_LIMIT_BYTES : TRACE_EPOCH_LIMIT_BYTES - EPOCH_TAIL_BYTES;

    return w->epoch_raw_bytes + writer_pending_bytes(w) + len_bytes <= most;
}

bool writer_may_refuse(const struct trace_writer *w, size_t len_bytes)
{
    return w->options.max_bytes || !fits_epoch(w, len_bytes);
}

bool writer_make_room(struct trace_writer *w, size_t len_bytes)
{
    if (w->finished) {
        writer_fail(w, error_path(ERROR_USAGE, w->path, "not written: the trace was finished"));
        return false;
    }
    if (len_bytes > TRACE_BLOCK_LIMIT_BYTES) {
        writer_fail(w, error_path(ERROR_LIMIT, w->path, "a record of %zu bytes is longer than a block may be", len_bytes));
        return false;
    }
    if (!fits_epoch(w, len_bytes)) {
        if (w->closing)
            writer_fail(w, error_path(ERROR_LIMIT, w->path, "an epoch is longer than %d bytes", TRACE_EPOCH_LIMIT_BYTES));
        else if (trace_writer_epoch_fits(w))
            w->epoch_full = true;
        else
            w->full = true; /* there will be no other epoch */
        return false;
    }
    if (writer_pending_bytes(w) && writer_pending_bytes(w) + len_bytes > w->options.block_max_bytes)
        writer_flush(w, 0);
    return fits(w, len_bytes) && !w->failed;
}
