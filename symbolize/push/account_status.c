/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times are told as times, not as ages: an age in a file that nobody rewrites any more would stay young. What was never seen
 * has no figure.
 */
#include "formats/base/clock.h"
#include "formats/base/metrics.h"
#include "symbolize/push/account_figures.h"

static void put_counter(struct buf *out, const char *name, const char *help, uint64_t figure)
{
    metrics_family(out, name, "counter", help);
    metrics_put_u64(out, name, NULL, NULL, figure);
}

static void put_counts(struct buf *out, const char *name, const char *help, const struct account_counts *counts, bool samples)
{
    metrics_family(out, name, "counter", help);
    for (size_t i = 0; i < counts->count; i++) {
        const struct account_count *c = &counts->data[i];
        metrics_put_u64(out, name, "reason", c->name, samples ? c->sum.samples : c->sum.profiles);
    }
}

static void put_time(struct buf *out, const char *name, const char *help, uint64_t realtime_ns)
{
    metrics_family(out, name, "gauge", help);
    if (realtime_ns)
        metrics_put(out, name, NULL, NULL, (double)(realtime_ns / NS_PER_MS) / 1000);
}

static void put_traces(const struct account_figures *f, struct buf *out)
{
    static const char *const results[] = {
        [ACCOUNT_TRACE_DONE] = "done",
        [ACCOUNT_TRACE_DAMAGED] = "damaged",
        [ACCOUNT_TRACE_UNREADABLE] = "unreadable",
        [ACCOUNT_TRACE_GONE] = "gone",
    };
    static const char name[] = "pysym_push_traces_total";

    metrics_family(out, name, "counter",
                   "Traces by result: done, damaged (sent as far as it could be read), unreadable, gone (removed before it was sent).");
    for (size_t i = 0; i < ACCOUNT_TRACE_RESULTS; i++)
        metrics_put_u64(out, name, "result", results[i], f->traces[i]);
    put_counter(out, "pysym_push_trace_bytes_total", "Bytes of these traces.", f->trace_bytes);
}

void account_put_status(const struct account_figures *f, struct buf *out)
{
    put_counter(out, "pysym_push_accepted_profiles_total", "Profiles that the store accepted.", f->accepted.profiles);
    put_counter(out, "pysym_push_accepted_samples_total", "Samples in them.", f->accepted.samples);
    put_counter(out, "pysym_push_accepted_bytes_total", "Bytes of them, compressed.", f->accepted_bytes);
    put_counter(out, "pysym_push_repeated_profiles_total",
                "Accepted profiles that the store may have had before, since an earlier answer was not seen or their trace grew.",
                f->repeated.profiles);
    put_counter(out, "pysym_push_repeated_samples_total", "Samples in them.", f->repeated.samples);
    put_counts(out, "pysym_push_refused_profiles_total", "Profiles that the store refused for good.", &f->refused, false);
    put_counts(out, "pysym_push_refused_samples_total", "Samples in them.", &f->refused, true);
    put_counts(out, "pysym_push_retries_total", "Requests that have to be repeated.", &f->retries, false);
    put_traces(f, out);
    put_counts(out, "pysym_push_recorder_lost_samples_total", "Samples that the recorder lost, as the traces say.", &f->lost, true);
    put_counts(out, "pysym_push_recorder_incomplete_total",
               "What the recorder lost of samples that are there, such as the outer part of a stack, as the traces say.", &f->incomplete, true);
    metrics_family(out, "pysym_push_backlog_traces", "gauge", "Traces that wait to be sent.");
    metrics_put_u64(out, "pysym_push_backlog_traces", NULL, NULL, f->backlog_traces);
    put_time(out, "pysym_push_backlog_oldest_timestamp_seconds", "Since when the oldest of them waits; none waits: no figure.",
             f->backlog_since_ns);
    put_time(out, "pysym_push_newest_sample_timestamp_seconds", "Time of the newest sample that the store has.", f->newest_sample_ns);
    put_time(out, "pysym_push_last_answer_timestamp_seconds", "When the store last gave a sound answer.", f->answered_ns);
    metrics_family(out, "pysym_push_store_up", "gauge", "1 if the last answer of the store was sound.");
    metrics_put_u64(out, "pysym_push_store_up", NULL, NULL, f->sound);
}
