/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/pprof/facts.h"

#include <inttypes.h>

#include "formats/emit/capture_facts.h"
#include "formats/emit/names.h"
#include "formats/emit/pprof/fields.h"
#include "formats/emit/protobuf.h"
#include "formats/emit/shown.h"

/* ---- time ---- */

struct times {
    uint64_t start_ns; /* since 1970; 0: unknown */
    uint64_t duration_ns;
};

/* CLOCK_MONOTONIC of a capture as time since 1970; 0: unknown, or before 1970. */
static uint64_t realtime_of(const struct emit_capture *c, uint64_t monotonic_ns)
{
    uint64_t time_ns = capture_realtime_ns(c, monotonic_ns);

    return c->realtime_ns && time_ns <= INT64_MAX ? time_ns : 0;
}

/*
 * When the profile begins, and how long it is. For whole captures that is their start and duration, so that the percentage
 * in pprof's head is of the recording; for samples that were chosen by time it is the span of the samples; for a window of
 * --window it is what was recorded of the window. Durations of several captures are added up, as pprof does when it merges
 * profiles. The span of a single sample is 0, which tells pprof that the duration is not known; but Parca keeps a profile
 * without a duration as one of another type, which queries for the others don't find.
 */
static struct times times_of(const struct pprof_samples *samples, const struct emit_options *options)
{
    const struct emit_model *m = samples->model;
    const struct emit_part *part = options->part;
    bool is_window = part && part->window_end_ns, chosen = options->times_chosen || is_window;
    struct times t = {0};

    if (is_window && part->end_ns > part->begin_ns)
        return (struct times){part->begin_ns, part->end_ns - part->begin_ns};
    if (is_window && part->series != EMIT_PART_ALL)
        return (struct times){part->window_begin_ns, part->window_end_ns - part->window_begin_ns};
    for (uint32_t i = 0; i < m->capture_count; i++) {
        const struct emit_capture *c = &m->captures[i];
        const struct pprof_span none = {0}, *span = i < samples->spans.count ? &samples->spans.data[i] : &none;
        uint64_t start = chosen ? 0 : c->start_realtime_ns;
        if (!start && span->seen)
            start = realtime_of(c, span->first_ns);
        if (start && (!t.start_ns || start < t.start_ns))
            t.start_ns = start;
        t.duration_ns = pprof_sum(t.duration_ns, chosen ? span->last_ns - span->first_ns : c->duration_ns);
    }
    return t;
}

/* ---- comments ---- */

/* Begins a line about a capture: "trace.bin: ". */
static void begin_line(const struct emit_capture *c, struct buf *line)
{
    buf_clear(line);
    name_plain(c->name ? c->name : "", line);
    buf_put_str(line, ": ");
}

static bool put_comment(struct pprof_tables *tables, struct buf *line, struct buf *out)
{
    struct buf clean = {0};

    name_plain(buf_cstr(line), &clean);
    uint32_t text = line->bad ? PPROF_NONE : pprof_string(tables, &clean);
    protobuf_put_i64(out, PPROF_COMMENT, text);
    buf_deinit(&clean);
    return text != PPROF_NONE;
}

static bool put_host(const struct emit_capture *c, struct pprof_tables *tables, struct buf *line, struct buf *out)
{
    if (!*c->hostname && !*c->kernel_release)
        return true;
    begin_line(c, line);
    buf_printf(line, "host %s, Linux %s", *c->hostname ? c->hostname : "unknown",
               *c->kernel_release ? c->kernel_release : "unknown");
    if (*c->machine)
        buf_printf(line, ", %s", c->machine);
    if (c->cpu_count)
        buf_printf(line, ", %u CPU%s", c->cpu_count, c->cpu_count == 1 ? "" : "s");
    return put_comment(tables, line, out);
}

static bool put_recorder(const struct emit_capture *c, struct pprof_tables *tables, struct buf *line, struct buf *out)
{
    if (!*c->recorder && !c->setting_count)
        return true;
    begin_line(c, line);
    buf_printf(line, "recorded by %s", *c->recorder ? c->recorder : "an unknown program");
    for (uint32_t i = 0; i < c->setting_count; i++)
        buf_printf(line, "%s %s=%s", i ? "," : ":", c->settings[i].key, c->settings[i].value);
    return put_comment(tables, line, out);
}

static bool put_loss(const struct emit_capture *c, const struct emit_loss *loss, struct pprof_tables *tables,
                     struct buf *line, struct buf *out)
{
    begin_line(c, line);
    buf_printf(line, "lost: %" PRIu64 " %s", loss->count, loss->name);
    if (*loss->event)
        buf_printf(line, " of %s", loss->event);
    if (*loss->meaning)
        buf_printf(line, " (%s)", loss->meaning);
    return put_comment(tables, line, out);
}

static bool put_capture(const struct emit_capture *c, struct pprof_tables *tables, struct buf *line, struct buf *out)
{
    bool ok = put_host(c, tables, line, out) && put_recorder(c, tables, line, out);

    for (uint32_t i = 0; ok && i < c->loss_count; i++)
        ok = put_loss(c, &c->losses[i], tables, line, out);
    return ok;
}

/* "pysym 0.2.0; 6.90 s of 7.31 s shown (--comm gunicorn)" */
static bool put_converter(const struct emit_model *m, const struct emit_options *options, struct pprof_tables *tables,
                          struct buf *line, struct buf *out)
{
    buf_clear(line);
    buf_printf(line, "converted by %s", options->exporter ? options->exporter : "pysym");
    for (uint32_t event = 0; *m->filters && m->totals && event < m->event_count; event++) {
        buf_printf(line, "%s", event ? ", " : ": ");
        if (m->event_count > 1)
            buf_printf(line, "%s: ", m->events[event].name);
        shown_put(m, event, line);
    }
    if (*m->filters)
        buf_printf(line, " (%s)", m->filters);
    return put_comment(tables, line, out);
}

struct error *pprof_facts_write(const struct pprof_samples *samples, const struct emit_options *options,
                                struct pprof_tables *tables, struct gzip *out)
{
    const struct emit_model *m = samples->model;
    struct times times = times_of(samples, options);
    struct buf fields = {0}, line = {0};

    protobuf_put_u64(&fields, PPROF_TIME_NANOS, times.start_ns <= INT64_MAX ? times.start_ns : 0);
    protobuf_put_u64(&fields, PPROF_DURATION_NANOS, times.duration_ns);
    bool ok = options->no_comments || put_converter(m, options, tables, &line, &fields);
    for (uint32_t i = 0; ok && !options->no_comments && i < m->capture_count; i++)
        ok = put_capture(&m->captures[i], tables, &line, &fields);
    struct error *err = ok ? pprof_write(out, &fields) : error_no_memory();
    buf_deinit(&fields);
    buf_deinit(&line);
    return err;
}
