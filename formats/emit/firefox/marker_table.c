/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "formats/emit/firefox/markers.h"

enum { MARKER_WORK = 100, PHASE_INTERVAL = 1 };

/* Names of markers, beside those of waits, which say for what. */
static const char *const names[FIREFOX_MARKERS] = {[FIREFOX_MARKER_TASK] = "asyncio task", [FIREFOX_MARKER_GIL] = "GIL held"};
static const char *const types[FIREFOX_MARKERS] = {
    [FIREFOX_MARKER_WAIT] = "wait", [FIREFOX_MARKER_TASK] = "task", [FIREFOX_MARKER_GIL] = "gil"};
static const enum firefox_category categories[FIREFOX_MARKERS] = {[FIREFOX_MARKER_WAIT] = FIREFOX_WAITING,
                                                                  [FIREFOX_MARKER_TASK] = FIREFOX_PYTHON,
                                                                  [FIREFOX_MARKER_GIL] = FIREFOX_PYTHON};

void firefox_marker_schemas_put(struct buf *out)
{
    buf_put_str(out,
                "[{\"name\":\"wait\",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],"
                "\"tooltipLabel\":\"Waited for: {marker.data.kind}\",\"tableLabel\":\"{marker.data.kind} {marker.data.call}\","
                "\"chartLabel\":\"{marker.data.call}\","
                "\"description\":\"A wait, as the kernel measured it: from when the thread left its CPU until it came back.\","
                "\"fields\":[{\"key\":\"kind\",\"label\":\"Waited for\",\"format\":\"unique-string\"},"
                "{\"key\":\"call\",\"label\":\"System call\",\"format\":\"unique-string\"},"
                "{\"key\":\"waker\",\"label\":\"Woken by\",\"format\":\"unique-string\"}]},\n"
                "{\"name\":\"task\",\"display\":[\"marker-chart\",\"marker-table\",\"timeline-overview\"],"
                "\"tooltipLabel\":\"asyncio task {marker.data.task}\",\"tableLabel\":\"{marker.data.task}\","
                "\"chartLabel\":\"{marker.data.task}\","
                "\"description\":\"Samples in a row that were taken while this asyncio task ran. The task may have begun and "
                "ended up to a sample earlier or later, and have run in between without a sample.\","
                "\"fields\":[{\"key\":\"task\",\"label\":\"Task\",\"format\":\"unique-string\"}]},\n"
                "{\"name\":\"gil\",\"display\":[\"marker-chart\",\"marker-table\"],"
                "\"description\":\"Samples in a row in which the thread held the global interpreter lock. It may have let it go "
                "between two samples.\","
                "\"fields\":[]}]");
}

struct marker {
    uint64_t start_ns, end_ns; /* since the start of the file */
    uint32_t label_set, stack;
    enum firefox_marker_kind kind;
};

/* *found false: there are no more. */
static struct error *next_marker(const struct firefox_markers *m, struct spool_reader *reader, struct marker *marker,
                                 bool *found)
{
    const struct spool_run *run;

    TRY(spool_next(reader, &run));
    *found = run;
    if (!run)
        return NULL;
    *marker = (struct marker){.start_ns = run->weight, .label_set = run->stack};
    TRY(spool_next(reader, &run));
    if (run) {
        uint64_t capture_start_ns = firefox_capture_start(m->model, run->stack / FIREFOX_MARKERS);
        marker->kind = run->stack % FIREFOX_MARKERS;
        marker->start_ns += capture_start_ns;
        marker->end_ns = run->weight + capture_start_ns;
    }
    TRY(spool_next(reader, &run));
    marker->stack = run ? run->stack : EMIT_NO_STACK;
    return limits_work(m->limits, MARKER_WORK) ? NULL : error_no_memory();
}

/* ---- columns ---- */

/* Appends an item. False: out of memory. */
typedef bool put_item(const struct emit_model *m, struct firefox_stacks *stacks, const struct marker *marker, struct buf *out);

static bool put_start(const struct emit_model *m, struct firefox_stacks *stacks, const struct marker *marker, struct buf *out)
{
    (void)m, (void)stacks;
    firefox_put_ms(marker->start_ns, out);
    return true;
}

static bool put_end(const struct emit_model *m, struct firefox_stacks *stacks, const struct marker *marker, struct buf *out)
{
    (void)m, (void)stacks;
    firefox_put_ms(marker->end_ns, out);
    return true;
}

static bool put_phase(const struct emit_model *m, struct firefox_stacks *stacks, const struct marker *marker, struct buf *out)
{
    (void)m, (void)stacks, (void)marker;
    buf_printf(out, "%d", PHASE_INTERVAL);
    return true;
}

static bool put_category(const struct emit_model *m, struct firefox_stacks *stacks, const struct marker *marker, struct buf *out)
{
    (void)m, (void)stacks;
    buf_printf(out, "%d", categories[marker->kind]);
    return true;
}

static bool put_name(const struct emit_model *m, struct firefox_stacks *stacks, const struct marker *marker, struct buf *out)
{
    const char *kind = firefox_label(firefox_labels_of(m, marker->label_set), FIREFOX_LABEL_WAIT);
    struct buf name = {0};

    if (names[marker->kind]) {
        buf_put_str(&name, names[marker->kind]);
    } else {
        buf_put_str(&name, "wait: ");
        name_plain(kind ? kind : "unknown", &name);
    }
    uint32_t number = firefox_string(&stacks->strings, &name);
    buf_deinit(&name);
    buf_printf(out, "%" PRIu32, number);
    return number != FIREFOX_NONE;
}

static bool put_text(struct firefox_stacks *stacks, const char *key, const char *text, struct buf *out)
{
    uint32_t number = text ? firefox_plain_string(&stacks->strings, text) : 0;

    if (text)
        buf_printf(out, ",\"%s\":%" PRIu32, key, number);
    return number != FIREFOX_NONE;
}

static bool put_data(const struct emit_model *m, struct firefox_stacks *stacks, const struct marker *marker, struct buf *out)
{
    const struct emit_label_set *labels = firefox_labels_of(m, marker->label_set);
    bool ok = true;

    buf_printf(out, "{\"type\":\"%s\"", types[marker->kind]);
    if (marker->kind == FIREFOX_MARKER_TASK)
        ok = put_text(stacks, "task", firefox_label(labels, FIREFOX_LABEL_TASK), out);
    if (marker->kind == FIREFOX_MARKER_WAIT)
        ok = put_text(stacks, "kind", firefox_label(labels, FIREFOX_LABEL_WAIT), out) &&
             put_text(stacks, "call", labels->system_call, out) &&
             put_text(stacks, "waker", firefox_label(labels, FIREFOX_LABEL_WAKER), out);
    if (marker->kind == FIREFOX_MARKER_WAIT)
        buf_printf(out, ",\"cause\":{\"stack\":%" PRIu32 "}", firefox_stacks_find(stacks, marker->stack));
    buf_put_u8(out, '}');
    return ok;
}

static struct error *write_column(struct firefox_markers *m, struct firefox_stacks *stacks, const struct firefox_thread_markers *t,
                                  put_item *put, FILE *out)
{
    struct spool_reader reader = {.spool = m->spool, .list = &t->list};
    struct buf text = {0};
    struct marker marker;
    bool found, first = true;
    struct error *err;

    while (!(err = next_marker(m, &reader, &marker, &found)) && found) {
        buf_clear(&text);
        if (!first)
            buf_put_u8(&text, ',');
        first = false;
        if (!put(m->model, stacks, &marker, &text) || text.bad) {
            err = error_no_memory();
            break;
        }
        fwrite(text.data, text.len_bytes, 1, out);
    }
    spool_reader_deinit(&reader);
    buf_deinit(&text);
    return err;
}

struct error *firefox_markers_write(struct firefox_markers *m, struct firefox_stacks *stacks, uint32_t thread, FILE *out)
{
    static const struct {
        const char *name;
        put_item *put;
    } columns[] = {{"name", put_name},   {"startTime", put_start},   {"endTime", put_end},
                   {"phase", put_phase}, {"category", put_category}, {"data", put_data}};
    const struct firefox_thread_markers none = {0};
    const struct firefox_thread_markers *t = thread < m->threads.count ? &m->threads.data[thread] : &none;

    fprintf(out, "{\"length\":%" PRIu32, t->count);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        fprintf(out, ",\n\"%s\":[", columns[i].name);
        TRY(write_column(m, stacks, t, columns[i].put, out));
        fputc(']', out);
    }
    fputc('}', out);
    return NULL;
}
