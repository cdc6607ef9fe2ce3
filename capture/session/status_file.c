/* SPDX-License-Identifier: Apache-2.0 */
/* A function for each group of figures. Families are there from the first file on, so that a rate of them has a beginning. */
#include "capture/session/status_file.h"

#include "capture/host/errand.h"
#include "capture/host/messages.h"
#include "capture/host/quotas.h"
#include "capture/session/flight.h"
#include "capture/session/session_accounts.h"
#include "capture/session/session_budget.h"
#include "capture/session/session_files.h"
#include "capture/trace/trace_losses.h"
#include "formats/base/metrics.h"

#define AGE_NS (10 * NS_PER_S)

static double seconds(uint64_t ns)
{
    return (double)ns / NS_PER_S;
}

/* A time of CLOCK_MONOTONIC as seconds since 1970. */
static double unix_seconds(uint64_t time_ns)
{
    uint64_t now = now_ns(), real = clock_ns(CLOCK_REALTIME);

    return seconds(real) - (now > time_ns ? seconds(now - time_ns) : -seconds(time_ns - now));
}

static void put_one(struct buf *out, const char *name, const char *type, const char *help, double figure)
{
    metrics_family(out, name, type, help);
    metrics_put(out, name, NULL, NULL, figure);
}

static void put_count(struct buf *out, const char *name, const char *help, uint64_t count)
{
    metrics_family(out, name, "counter", help);
    metrics_put_u64(out, name, NULL, NULL, count);
}

static void put_session(const struct session *s, uint64_t time_ns, bool ended, struct buf *out)
{
    metrics_family(out, "pycap_build_info", "gauge", "The version of pycap that wrote this file; always 1.");
    metrics_put_u64(out, "pycap_build_info", "version", TOOL_VERSION, 1);
    put_one(out, "pycap_recording", "gauge", "1 while pycap records, 0 once it has ended in an orderly way.", ended ? 0 : 1);
    put_one(out, "pycap_start_time_seconds", "gauge", "When the recording began, in seconds since 1970.", unix_seconds(s->start_ns));
    put_one(out, "pycap_status_timestamp_seconds", "gauge",
            "When this file was written, in seconds since 1970. While pycap records it does so every 10 seconds.",
            unix_seconds(time_ns));
}

static void put_samples(const struct session *s, struct buf *out)
{
    uint64_t newest_ns = trace_builder_counts(s->builder).newest_ns;

    metrics_family(out, "pycap_samples_total", "counter", "Samples that were recorded, by what was sampled.");
    for (uint32_t i = 0; i < s->events.count; i++)
        metrics_put_u64(out, "pycap_samples_total", "event", s->events.list[i].source->name,
                        trace_builder_event_samples(s->builder, i));
    if (newest_ns)
        put_one(out, "pycap_last_sample_timestamp_seconds", "gauge",
                "When the newest sample that was recorded was taken, in seconds since 1970. On a host where Python is idle it may "
                "be long ago.",
                unix_seconds(newest_ns));
    put_one(out, "pycap_processes", "gauge", "Python processes that are sampled now.", processes_counts(s->processes).python);
    put_count(out, "pycap_sampled_processes_total", "Processes of which at least one sample was recorded.",
              trace_builder_counts(s->builder).processes);
}

static void put_losses(const struct session *s, struct buf *out)
{
    uint64_t refused[QUOTA_COUNT];

    put_count(out, "pycap_lost_samples_total",
              "Samples that are missing: they should have been taken, but are not in the trace. The reasons are in pycap_losses_total.",
              session_lost_samples(s));
    metrics_family(out, "pycap_losses_total", "counter",
                   "What was lost, by reason. Some reasons cost a sample, the others a part of it, such as the name of a function. "
                   "The summary of a trace (pysym -f summary -v) explains each.");
    for (uint32_t i = 0; i < LOSS_LIMIT; i++) {
        if (i != LOSS_complete && trace_loss_class(i) != LOSS_CLASS_unknown && trace_loss_class(i) != LOSS_CLASS_retired)
            metrics_put_u64(out, "pycap_losses_total", "reason", trace_loss_name(i), s->losses[i]);
    }
    metrics_family(out, "pycap_cuts_total", "counter",
                   "How often something was left out because a process had reached the limit of what one process may cost pycap, by "
                   "limit.");
    trace_builder_refused(s->builder, refused);
    for (uint32_t i = 0; i < QUOTA_COUNT; i++)
        metrics_put_u64(out, "pycap_cuts_total", "limit", quota_name(i), refused[i]);
}

static void put_hertz(struct buf *out, const char *name, const char *help, const struct event_list *events)
{
    metrics_family(out, name, "gauge", help);
    for (uint32_t i = 0; i < events->count; i++) {
        if (events->list[i].frequency_hz)
            metrics_put_u64(out, name, "event", events->list[i].source->name, events->list[i].frequency_hz);
    }
}

static void put_rate(const struct session *s, struct buf *out)
{
    if (s->o->frequency_hz) {
        put_hertz(out, "pycap_rate_hertz", "Samples a second that are taken now of a CPU that is busy with Python.", &s->events);
        put_hertz(out, "pycap_asked_rate_hertz", "The same as it was asked for.", &s->o->events);
    }
    put_one(out, "pycap_rate_ratio", "gauge",
            "The part of what was asked for that is sampled now: 1 is all of it. It is less while --max-cpu, --max-memory, "
            "--max-size or a full buffer slow sampling down.",
            (double)s->budget.rate / (double)s->budget.options.rate);
    put_count(out, "pycap_slowdowns_total", "How often the rate was lowered.", s->budget.steps);
}

static void put_cost(const struct session *s, struct buf *out)
{
    uint64_t sampler_ns = 0, look_ns;

    metrics_family(out, "pycap_cpu_seconds_total", "counter",
                   "CPU time of pycap: of the processes that read others (reader), of that which writes the files (writer), and of "
                   "the sampler in the kernel (sampler), which runs on the time of the programs that it samples.");
    metrics_put(out, "pycap_cpu_seconds_total", "part", "reader", seconds(clock_ns(CLOCK_PROCESS_CPUTIME_ID) + errand_cpu_ns()));
    metrics_put(out, "pycap_cpu_seconds_total", "part", "writer", seconds(outputs_cpu_ns(s->outputs)));
    if (s->sampler) {
        sampler_cpu_time(s->sampler, &sampler_ns, &look_ns);
        metrics_put(out, "pycap_cpu_seconds_total", "part", "sampler", seconds(sampler_ns));
    }
    put_one(out, "pycap_resident_memory_bytes", "gauge", "Memory of the process that reads others, with the sampler's buffer.",
            (double)procfs_own_resident());
    if (s->sampler) {
        put_one(out, "pycap_buffer_bytes", "gauge", "Size of the buffer between the sampler in the kernel and pycap.",
                (double)sampler_ring_bytes(s->sampler));
        put_one(out, "pycap_buffer_peak_bytes", "gauge",
                "The most that was in that buffer at once since the file before this one was written.",
                (double)s->drained_most_bytes);
    }
}

static void put_files(const struct session *s, struct buf *out)
{
    put_count(out, "pycap_written_bytes_total", "Bytes that were written to traces.", session_bytes(s));
    put_count(out, "pycap_files_total", "Traces that were begun; more than one with --rotate and --on-demand.", s->file_count);
    struct output_backlog backlog = outputs_backlog(s->outputs, false);
    if (backlog.room != OUTPUT_ROOM_FILE)
        put_one(out, "pycap_unread_bytes", "gauge", "Bytes of the trace that the reader of the pipe has not taken yet.",
                (double)backlog.len_bytes);
}

static void put_flight(const struct session *s, uint64_t time_ns, struct buf *out)
{
    struct flight_counts c = flight_counts(s);

    metrics_family(out, "pycap_events_total", "counter", "Events for which --on-demand writes a file, by what reported them.");
    metrics_put_u64(out, "pycap_events_total", "by", "signal", c.signals);
    metrics_put_u64(out, "pycap_events_total", "by", "condition", c.conditions);
    put_count(out, "pycap_event_files_total", "Files of events that are complete. An event that came while one was written has no file of its own.",
              c.files);
    put_count(out, "pycap_event_failures_total", "Events whose file could not be written.", c.failed);
    put_one(out, "pycap_event_written", "gauge", "1 while the file of an event is written, 0 while pycap stands by.", flight_writes(s));
    put_one(out, "pycap_kept_bytes", "gauge", "Bytes of the trace that are kept in memory.", (double)flight_kept_bytes(s));
    put_one(out, "pycap_kept_seconds", "gauge", "How far back what is kept in memory reaches. Less than --before: pycap has just begun, "
            "or --max-memory is too little.", seconds(time_ns - flight_kept_since_ns(s)));
}

static void write_file(struct session *s, uint64_t time_ns, bool ended)
{
    struct buf text = {0};

    if (!s->o->status || outputs_lost(s->outputs))
        return;
    s->status_file_ns = time_ns;
    put_session(s, time_ns, ended, &text);
    put_samples(s, &text);
    put_losses(s, &text);
    put_rate(s, &text);
    put_cost(s, &text);
    put_files(s, &text);
    if (s->flight)
        put_flight(s, time_ns, &text);
    s->drained_most_bytes = 0;
    struct error *err = text.bad ? error_no_memory() : outputs_publish(s->outputs, text.data, text.len_bytes);
    if (err && !s->status_file_failed) {
        messages_line(s->o->messages, "--status: %s (the recording goes on, and it is tried again)", error_text(err));
        s->status_file_failed = true;
    }
    error_destroy(err);
    buf_deinit(&text);
}

bool status_file_due(const struct session *s, uint64_t time_ns)
{
    return s->o->status && time_ns - s->status_file_ns >= AGE_NS;
}

void status_file_write(struct session *s, uint64_t time_ns)
{
    write_file(s, time_ns, false);
}

void status_file_end(struct session *s, uint64_t time_ns)
{
    write_file(s, time_ns, true);
}
