/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/firefox/meta.h"

#include <inttypes.h>
#include <stdlib.h>

#include "formats/base/clock.h"
#include "formats/emit/event_order.h"
#include "formats/emit/firefox/markers.h"
#include "formats/emit/json.h"
#include "formats/emit/shown.h"

enum {
    GECKO_VERSION = 31,     /* required, though it says nothing of a file that Firefox did not write */
    PROCESSED_VERSION = 61, /* of the format; the Profiler brings older ones up to date */
    TRACKS_MOST = 60,       /* that are shown at first */
    TRACKS_LEAST_SHARE = 1000 /* the smallest of them has a thousandth of its event */
};

static void put_name(const char *key, const char *name, struct buf *out)
{
    struct buf clean = {0};

    name_plain(name, &clean);
    buf_put_str(out, key);
    json_put_foreign(buf_cstr(&clean), out);
    out->bad |= clean.bad;
    buf_deinit(&clean);
}

uint32_t firefox_first_event(const struct emit_model *m)
{
    for (uint32_t i = 0; i < m->event_count; i++) {
        if (event_is_running(m->events[i].kind))
            return i;
    }
    return 0;
}

/* ---- the machine ---- */

static void put_machine(const struct emit_capture *c, struct buf *out)
{
    struct buf os = {0};

    buf_printf(&os, "Linux%s%s%s%s", *c->kernel_release ? " " : "", c->kernel_release, *c->machine ? " " : "", c->machine);
    put_name(",\"oscpu\":", buf_cstr(&os), out);
    buf_put_str(out, ",\"platform\":\"Linux\"");
    if (*c->cpu_model)
        put_name(",\"CPUName\":", c->cpu_model, out);
    if (c->cpu_count)
        buf_printf(out, ",\"logicalCPUs\":%" PRIu32, c->cpu_count);
    if (c->memory_bytes)
        buf_printf(out, ",\"mainMemory\":%" PRIu64, c->memory_bytes);
    out->bad |= os.bad;
    buf_deinit(&os);
}

/* ---- what was recorded ---- */

static void put_entry(const char *label, const char *value, bool first, struct buf *out)
{
    put_name(first ? "{\"label\":" : ",\n{\"label\":", label, out);
    put_name(",\"format\":\"string\",\"value\":", value, out);
    buf_put_u8(out, '}');
}

static void put_loss(const struct emit_loss *loss, struct buf *out)
{
    struct buf label = {0}, value = {0};

    /* The Profiler wants labels of a section to be different. */
    buf_printf(&label, "%s: %s%s%s", loss->is_sample ? "Samples lost" : "Incomplete", loss->name, *loss->event ? " of " : "",
               loss->event);
    buf_printf(&value, "%" PRIu64 "%s%s", loss->count, *loss->meaning ? ": " : "", loss->meaning);
    put_entry(buf_cstr(&label), buf_cstr(&value), false, out);
    out->bad |= label.bad || value.bad;
    buf_deinit(&label);
    buf_deinit(&value);
}

/* A section of the Profiler's panel "More info". */
static void put_capture(const struct emit_capture *c, struct buf *out)
{
    struct buf settings = {0};

    for (uint32_t i = 0; i < c->setting_count; i++)
        buf_printf(&settings, "%s%s=%s", i ? ", " : "", c->settings[i].key, c->settings[i].value);
    put_name("{\"label\":", *c->name ? c->name : "recording", out);
    buf_put_str(out, ",\"entries\":[");
    put_entry("Recorded by", *c->recorder ? c->recorder : "an unknown program", true, out);
    if (*c->hostname)
        put_entry("Host", c->hostname, false, out);
    if (settings.len_bytes)
        put_entry("Settings", buf_cstr(&settings), false, out);
    for (uint32_t i = 0; i < c->loss_count; i++)
        put_loss(&c->losses[i], out);
    buf_put_str(out, "]}");
    out->bad |= settings.bad;
    buf_deinit(&settings);
}

/* What filters left of each event. */
static void put_filters(const struct emit_model *m, struct buf *out)
{
    struct buf text = {0};

    buf_put_str(out, ",\n{\"label\":\"Filters\",\"entries\":[");
    put_entry("Options", m->filters, true, out);
    for (uint32_t event = 0; m->totals && event < m->event_count; event++) {
        buf_clear(&text);
        shown_put(m, event, &text);
        put_entry(m->events[event].name, buf_cstr(&text), false, out);
    }
    buf_put_str(out, "]}");
    out->bad |= text.bad;
    buf_deinit(&text);
}

static void put_extra(const struct emit_model *m, struct buf *out)
{
    buf_put_str(out, ",\n\"extra\":[");
    for (uint32_t i = 0; i < m->capture_count; i++) {
        buf_put_str(out, i ? ",\n" : "");
        put_capture(&m->captures[i], out);
    }
    if (m->capture_count && m->filters && *m->filters)
        put_filters(m, out);
    buf_put_u8(out, ']');
}

/* ---- times ---- */

/* The range that the Profiler shows; without it, it is that of the samples. */
static void put_times(const struct firefox_tracks *tracks, const struct emit_options *options, struct buf *out)
{
    const struct emit_part *part = options->part;
    uint64_t start = firefox_start(tracks->model), begin = 0, end = firefox_end(tracks->times);

    buf_put_str(out, ",\"startTime\":");
    firefox_put_ms(start, out);
    if (part && part->end_ns > part->begin_ns && part->begin_ns >= start) {
        begin = part->begin_ns - start;
        end = part->end_ns - start;
    } else if (options->times_chosen) {
        return;
    }
    if (end <= begin)
        return;
    buf_put_str(out, ",\"profilingStartTime\":");
    firefox_put_ms(begin, out);
    buf_put_str(out, ",\"profilingEndTime\":");
    firefox_put_ms(end, out);
}

/* ---- tracks ---- */

/* The heaviest track of an event; the number of tracks if it has none. */
static size_t heaviest_of(const struct firefox_tracks *tracks, uint32_t event)
{
    size_t heaviest = tracks->list.count;

    for (size_t i = 0; i < tracks->list.count; i++) {
        const struct firefox_track *track = &tracks->list.data[i];
        if (track->event == event && (heaviest == tracks->list.count || track->weight > tracks->list.data[heaviest].weight))
            heaviest = i;
    }
    return heaviest;
}

/*
 * The tracks that are shown at first: of the first event those with some weight, of each other event the heaviest. The
 * Profiler lists the others. The heaviest of all is selected.
 */
static struct error *put_visible(const struct firefox_tracks *tracks, struct buf *out)
{
    const struct firefox_track *list = tracks->list.data;
    uint32_t first = list ? list[0].event : 0, shown = 0;
    bool *visible = calloc(tracks->list.count + 1, sizeof *visible);
    uint64_t weight = 0;

    if (!visible || !limits_work(tracks->limits, (uint64_t)tracks->model->event_count * (tracks->list.count + 1))) {
        free(visible);
        return error_no_memory();
    }
    for (size_t i = 0; i < tracks->list.count; i++)
        first = event_order(tracks->model, list[i].event, first) < 0 ? list[i].event : first;
    for (uint32_t event = 0; event < tracks->model->event_count; event++)
        visible[heaviest_of(tracks, event)] = true;
    for (size_t i = 0; i < tracks->list.count; i++)
        weight += list[i].event == first ? list[i].weight : 0;
    for (size_t i = 0; i < tracks->list.count && shown < TRACKS_MOST; i++) {
        bool counts = list[i].event == first && list[i].weight >= weight / TRACKS_LEAST_SHARE;
        visible[i] |= counts;
        shown += counts;
    }
    size_t selected = tracks->list.count ? heaviest_of(tracks, first) : 0;
    buf_printf(out, ",\"initialSelectedThreads\":[%zu],\"initialVisibleThreads\":[", selected);
    for (size_t i = 0, count = 0; i < tracks->list.count || !count; i++) {
        if (visible[i] || !tracks->list.count)
            buf_printf(out, "%s%zu", count++ ? "," : "", i);
    }
    buf_put_u8(out, ']');
    free(visible);
    return NULL;
}

static const char *product(const struct firefox_tracks *tracks)
{
    const struct emit_model *m = tracks->model;

    return tracks->list.count ? m->processes[m->threads[tracks->list.data[0].thread].process].name : "no samples";
}

static struct error *put_meta(const struct firefox_stacks *stacks, const struct firefox_tracks *tracks,
                              const struct emit_options *options, struct buf *out)
{
    const struct emit_model *m = tracks->model;
    uint32_t first = firefox_first_event(m);
    uint64_t interval_ns = m->event_count ? firefox_interval(tracks->times, first) : NS_PER_MS;

    buf_printf(out, "{\"version\":%d,\"preprocessedProfileVersion\":%d,\"processType\":0,\"stackwalk\":1,\"symbolicated\":true",
               GECKO_VERSION, PROCESSED_VERSION);
    put_name(",\"product\":", product(tracks), out);
    put_name(",\"importedFrom\":", options->exporter ? options->exporter : "pysym", out);
    buf_put_str(out, ",\"interval\":");
    firefox_put_ms(interval_ns, out);
    put_times(tracks, options, out);
    if (m->capture_count)
        put_machine(&m->captures[0], out);
    buf_put_str(out, ",\n\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},"
                     "\"sourceCodeIsNotOnSearchfox\":true,\"keepProfileThreadOrder\":true");
    TRY(put_visible(tracks, out));
    buf_put_str(out, ",\n\"categories\":");
    firefox_categories_put(&stacks->categories, out);
    buf_put_str(out, ",\n\"markerSchema\":");
    firefox_marker_schemas_put(out);
    put_extra(m, out);
    buf_put_u8(out, '}');
    return out->bad || !interval_ns ? error_no_memory() : NULL;
}

struct error *firefox_meta_write(const struct firefox_stacks *stacks, const struct firefox_tracks *tracks,
                                 const struct emit_options *options, FILE *out)
{
    struct buf text = {0};
    struct error *err = put_meta(stacks, tracks, options, &text);

    if (!err)
        fwrite(text.data, text.len_bytes, 1, out);
    buf_deinit(&text);
    return err;
}
