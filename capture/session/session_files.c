/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a capture, one after the other, and the account that stands at the end of each. */
#include <inttypes.h>
#include <unistd.h>

#include "capture/session/interrupt.h"
#include "capture/session/session_state.h"

/* /proc/stat counts in these (USER_HZ). */
#define IDLE_GRAIN_NS (10 * MS)

struct sampler_event_info capture_event(const struct record *r)
{
    return r->proc ? proc_sampler_event(r->proc) : sampler_event(r->sampler);
}

void capture_sum_losses(struct record *r)
{
    uint64_t bpf[WIRE_LOSS_COUNT] = {0};
    const uint64_t *own = recorder_loss_counts(r->recorder);

    if (r->sampler)
        sampler_losses(r->sampler, bpf);
    for (uint32_t i = 0; i < LOSS_LIMIT; i++)
        r->losses[i] = bpf[i] + own[i];
    if (r->proc)
        proc_sampler_losses(r->proc, r->losses);
    r->losses[LOSS_code_incomplete] += codes_counts(r->codes).incomplete;
    r->losses[LOSS_string_cut] += codes_counts(r->codes).cut;
    if (r->sampler)
        r->losses[LOSS_process_forbidden] += processes_counts(r->processes).forbidden;
    r->losses[LOSS_sideband_lost] += processes_counts(r->processes).lost;
    r->losses[LOSS_known_late] += processes_counts(r->processes).late_ticks;
    r->losses[LOSS_tick_skipped] += r->skipped;
}

/* Samples that are not in the file at all; the other losses leave a sample with less in it. */
uint64_t capture_lost_samples(const struct record *r)
{
    return r->losses[LOSS_ring_full] + r->losses[LOSS_tick_skipped] + r->losses[LOSS_nested] +
           r->losses[LOSS_process_gone] + r->losses[LOSS_time_unseen] + r->losses[LOSS_known_late] +
           r->losses[LOSS_file_full];
}

uint64_t capture_bytes(const struct record *r)
{
    return r->bytes_before + (r->writer ? trace_writer_bytes(r->writer) : 0);
}

static ssize_t write_output(void *ctx, int fd, const void *data, size_t len_bytes)
{
    (void)ctx;
    return interrupt_write(fd, data, len_bytes);
}

/* Opens the (next) file; what is counted per file begins here. */
struct error *capture_open_file(struct record *r, uint64_t time_ns)
{
    struct trace_writer_options writer = {.max_bytes = r->o->max_bytes, .write = write_output};

    if (!r->file_count)
        TRY(files_adopt(&r->files));
    interrupt_allow(); /* the reader of a pipe may be long in coming */
    struct error *err = files_open(&r->files);
    interrupt_hold();
    if (err)
        return err;
    for (uint32_t i = 0; i < r->cpu_count; i++)
        r->idle_ns[i] = host_idle_ns(r->cpus[i]);
    r->file_start_ns = time_ns;
    r->file_count++;
    return trace_writer_create(r->files.fd, r->files.path, &writer, time_ns, &r->writer);
}

/*
 * Ticks that should have come and did not: known for clocks, whose period is fixed. An idle CPU may sleep through
 * its ticks, which loses nothing: time that the kernel accounts as idle is left out on both sides.
 */
static void count_skipped(struct record *r, const struct sampler_ticks *ticks)
{
    struct sampler_event_info event = capture_event(r);

    if (!event.is_time || r->budget.steps) /* the period was not the same all the time */
        return;
    for (uint32_t i = 0; i < r->cpu_count; i++) {
        uint64_t idle = host_idle_ns(r->cpus[i]);
        idle = idle > r->idle_ns[i] ? idle - r->idle_ns[i] : 0;
        uint64_t busy = ticks[i].count > idle ? ticks[i].count - idle : 0;
        uint64_t seen = ticks[i].seen - ticks[i].seen_idle;
        /* Idle time is accounted in hundredths of a second, at either end of the capture. */
        uint64_t expected = busy > 4 * IDLE_GRAIN_NS ? (busy - 4 * IDLE_GRAIN_NS) / event.period : 0;
        if (expected > seen)
            r->skipped += expected - seen;
    }
}

/* The first of two errors. */
static struct error *first(struct error *err, struct error *later)
{
    if (!err)
        return later;
    error_destroy(later);
    return err;
}

/*
 * Puts into the file what stands at its end, and closes it, whatever fails on the way. Everything up to `time_ns` has
 * been recorded.
 */
struct error *capture_end_file(struct record *r, uint64_t time_ns, enum end_reason reason)
{
    struct sampler_ticks ticks[r->cpu_count];
    uint32_t tick_count = r->sampler ? r->cpu_count : 0;

    struct error *err = r->sampler ? sampler_ticks(r->sampler, r->ticks) : NULL;
    if (err)
        tick_count = 0; /* no account of ticks is better than a wrong one */
    for (uint32_t i = 0; i < tick_count; i++) {
        const struct sampler_ticks *now = &r->ticks[i], *then = &r->file_ticks[i];
        r->ticks[i].seen_others += recorder_unwanted(r->recorder, (uint32_t)now->cpu);
        ticks[i] = (struct sampler_ticks){
            .cpu = now->cpu,
            .count = now->count - then->count,
            .enabled_ns = now->enabled_ns - then->enabled_ns,
            .running_ns = now->running_ns - then->running_ns,
            .seen = now->seen - then->seen,
            .seen_idle = now->seen_idle - then->seen_idle,
            .seen_others = now->seen_others - then->seen_others,
        };
        r->file_ticks[i] = *now;
    }
    err = first(err, recorder_perf_maps(r->recorder, time_ns));
    if (err)
        reason = END_ERROR;
    trace_writer_closing(r->writer);
    if (tick_count)
        count_skipped(r, ticks);
    capture_sum_losses(r);
    recorder_losses(r->recorder, time_ns, r->losses);
    recorder_ticks(r->recorder, time_ns, ticks, tick_count);
    recorder_end(r->recorder, time_ns, reason, capture_lost_samples(r) - r->file_lost);
    r->file_lost = capture_lost_samples(r);
    interrupt_allow(); /* from fsync(), too */
    struct error *finished = trace_writer_finish(r->writer);
    interrupt_hold();
    if (interrupt_gave_up()) {
        error_destroy(finished);
        finished = error_path(ERROR_IO, r->files.path,
                              "nothing could be written for %d s after the signal: it has no end, and lacks the last "
                              "%" PRIu64 " samples",
                              (int)(INTERRUPT_GRACE_NS / SECOND),
                              recorder_counts(r->recorder).samples - trace_writer_written_count(r->writer));
    }
    err = first(err, finished);
    r->bytes_before += trace_writer_bytes(r->writer);
    trace_writer_destroy(r->writer);
    r->writer = NULL;
    return first(err, files_close(&r->files));
}

/* Goes on in another file: what was sampled before `time_ns` stands in the one before, what comes then in this one. */
struct error *capture_rotate(struct record *r, uint64_t time_ns)
{
    r->rotate_now = false;
    TRY(capture_end_file(r, time_ns, END_ROTATED));
    TRY(capture_open_file(r, time_ns));
    return recorder_next_file(r->recorder, r->writer, time_ns);
}

bool capture_rotation_due(const struct record *r, uint64_t time_ns)
{
    const struct record_options *o = r->o;

    return r->rotate_now || (o->rotate_ns && time_ns - r->file_start_ns >= o->rotate_ns) ||
           (o->rotate_bytes && trace_writer_bytes(r->writer) >= o->rotate_bytes);
}
