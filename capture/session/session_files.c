/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a capture, one after the other. */
#include "capture/session/session_files.h"

#include <inttypes.h>

#include "capture/output/interrupt.h"
#include "capture/session/flight.h"
#include "capture/session/session_accounts.h"
#include "capture/session/session_drain.h"
#include "capture/trace/trace_memory.h"
#include "formats/base/buf.h"

uint64_t session_bytes(const struct session *s)
{
    if (s->flight)
        return flight_file_bytes(s);
    return s->bytes_before + (s->writer ? trace_writer_bytes(s->writer) : 0);
}

static ssize_t write_output(void *ctx, int fd, const void *data, size_t len_bytes)
{
    (void)fd;
    return outputs_write(ctx, data, len_bytes);
}

static int sync_output(void *ctx, int fd)
{
    (void)fd;
    return outputs_sync(ctx);
}

struct error *session_open_file(struct session *s, uint64_t time_ns)
{
    struct trace_writer_options writer = {
        .max_bytes = s->o->max_bytes, .write = write_output, .sync = sync_output, .write_ctx = s->outputs};

    if (s->flight) {
        writer = (struct trace_writer_options){.write = flight_write, .write_ctx = s};
        return trace_writer_create(-1, s->o->output, &writer, time_ns, &s->writer);
    }
    TRY(outputs_open(s->outputs));
    session_begin_counts(s, time_ns);
    s->file_count++;
    struct error *err = trace_writer_create(-1, outputs_path(s->outputs), &writer, time_ns, &s->writer);
    s->write_failed = err != NULL;
    return err;
}

/* What a pipe's reader has not taken yet is waited for. */
static struct error *close_output(struct session *s)
{
    bool reader = session_has_reader(s), gave_up = interrupt_gave_up();
    struct error *err = outputs_close(s->outputs);

    if (!reader || gave_up || !interrupt_gave_up())
        return err;
    error_destroy(err);
    return error_path(ERROR_IO, outputs_path(s->outputs),
                      "its reader took nothing for %d s after the signal, so pycap waits no longer: what is not read very soon is lost",
                      (int)(INTERRUPT_GRACE_NS / NS_PER_S));
}

/*
 * Ends a file that cannot be written any more, as on a full disk: what it lacks is counted, and a last block says how much, if
 * there is still room for that.
 */
static void end_failed(struct session *s, uint64_t time_ns)
{
    uint64_t written = trace_writer_written_count(s->writer);
    struct buf block = {0};

    s->write_failed = true;
    s->last_written = written;
    s->unwritten = trace_builder_file_samples(s->builder) - written;
    session_sum_losses(s);
    struct trace_loss loss = {.time_ns = time_ns, .reason = LOSS_not_written, .count = s->unwritten};
    struct trace_end end = {.time_ns = time_ns, .reason = TRACE_END_ERROR, .sample_count = written,
                            .lost_count = session_lost_samples(s) - s->file_lost};
    if (trace_writer_last_block(s->writer, s->unwritten ? &loss : NULL, &end, &block) &&
        outputs_write(s->outputs, block.data, block.len_bytes) >= 0)
        s->bytes_before += block.len_bytes;
    buf_deinit(&block);
}

/* Puts into the file what stands at its end, and closes it, whatever fails on the way. */
struct error *session_end_file(struct session *s, uint64_t time_ns, enum trace_end_reason reason)
{
    if (s->flight)
        return flight_end(s, time_ns, reason);
    struct error *err = session_put_accounts(s, time_ns, reason == TRACE_END_ROTATED ? SESSION_ACCOUNT_FILE : SESSION_ACCOUNT_LAST);

    if (err)
        reason = TRACE_END_ERROR;
    if (session_has_reader(s)) /* as in flush() of session.c */
        trace_writer_flush(s->writer);
    trace_builder_end(s->builder, time_ns, reason, session_lost_samples(s) - s->file_lost);
    struct error *finished = trace_writer_finish(s->writer);
    if (trace_writer_failed(s->writer) && !session_has_reader(s) && !interrupt_gave_up() && !outputs_lost(s->outputs))
        end_failed(s, time_ns);
    s->file_lost = session_lost_samples(s);
    if (interrupt_gave_up()) {
        error_destroy(finished);
        finished = error_path(ERROR_IO, outputs_path(s->outputs),
                              "nothing could be written for %d s after the signal: it has no end, and lacks the last "
                              "%" PRIu64 " samples",
                              (int)(INTERRUPT_GRACE_NS / NS_PER_S),
                              trace_builder_file_samples(s->builder) - trace_writer_written_count(s->writer));
    }
    if (outputs_lost(s->outputs)) { /* outputs_close() says more about it */
        error_destroy(finished);
        finished = NULL;
    }
    err = error_first(err, finished);
    s->bytes_before += trace_writer_bytes(s->writer);
    trace_writer_destroy(s->writer);
    s->writer = NULL;
    return error_first(err, close_output(s));
}

/* Goes on in another file: what was sampled before `time_ns` stands in the one before, what comes then in this one. */
struct error *session_rotate(struct session *s, uint64_t time_ns)
{
    s->rotate_now = false;
    TRY(session_cut_waits(s, time_ns));
    TRY(trace_builder_read_all_memory(s->builder, now_ns()));
    TRY(session_end_file(s, time_ns, TRACE_END_ROTATED));
    TRY(session_open_file(s, time_ns));
    return trace_builder_next_file(s->builder, s->writer, time_ns);
}

bool session_rotation_due(const struct session *s, uint64_t time_ns)
{
    const struct session_options *o = s->o;

    return s->rotate_now || (o->rotate_ns && time_ns - s->file_start_ns >= o->rotate_ns) ||
           (o->rotate_bytes && trace_writer_bytes(s->writer) >= o->rotate_bytes);
}
