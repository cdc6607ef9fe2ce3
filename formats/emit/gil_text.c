/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gil as text. For each process a head says how long the GIL was held and waited for; then come its threads, and
 * functions such as
 *
 *      58.3%    7.10 s #####     hog (app.py:12)
 *                                blocked in clock_nanosleep; in usleep > clock_nanosleep
 *                                called by Thread.run (threading.py:975)
 */
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/emit/amounts.h"
#include "formats/emit/gil.h"
#include "formats/emit/names.h"
#include "formats/emit/shown.h"
#include "formats/emit/text_write.h"

enum {
    TIME_COLUMNS = 10,
    INDENT = 8 + TIME_COLUMNS + 1 + AMOUNT_BAR_COLUMNS + 2, /* of what stands behind share, time and bar */
    FUNCTION_COLUMNS = 60, /* of one of several in a line, at most */
    FRAMES_SHOWN = 3,
    NAME_COLUMNS_LEAST = 16,
};

static const struct emit_event time_event = {.kind = EVENT_CPU_TIME};

static void put_time(uint64_t ns, struct buf *out)
{
    amount_put(&time_event, ns, ns, out);
}

/* "7.31 s ± 0.09 s" */
static void put_estimate(uint64_t ns, const struct gil_sum *sampled, struct buf *out)
{
    put_time(ns, out);
    if (!sampled->samples || !sampled->variance)
        return;
    buf_put_str(out, " \xc2\xb1 ");
    amount_put(&time_event, gil_error_ns(sampled), ns, out);
}

/* ---- the head ---- */

static struct error *begin(const struct gil_view *v)
{
    struct buf text = {0};

    if (*v->model->filters) {
        buf_put_str(&text, "of the samples that pass ");
        name_plain(v->model->filters, &text);
        buf_put_str(&text, "\n\n");
    }
    if (!v->group_count)
        buf_put_str(&text, "no sample says whether its thread held a GIL: recorded without BPF, or no Python that has one was sampled\n");
    return text_write(&text, v->out);
}

static void put_title(const struct gil_view *v, const struct gil_group *g, struct buf *out)
{
    uint64_t duration_ns = gil_duration_ns(v);
    struct number n;

    if (g->process == EMIT_PART_ALL)
        buf_put_str(out, counted(g->process_count, "process", "processes", &n));
    else
        name_owner(v->model, EMIT_MERGE_PROCESS, g->process, out);
    if (duration_ns) {
        buf_put_str(out, ", recorded for ");
        put_time(duration_ns, out);
    }
    buf_put_u8(out, '\n');
}

/* "  held         7.31 s ± 0.09 s (73.1 % of the time) by 5 threads: 6.90 s running, 0.41 s off the CPU" */
static void put_held(const struct gil_view *v, const struct gil_group *g, struct buf *out)
{
    const struct gil_sum *ran = &g->sums[GIL_RAN], *off = &g->sums[GIL_OFF];
    uint64_t held_ns = ran->ns + off->ns, duration_ns = gil_duration_ns(v);
    uint64_t most_ns = held_ns < duration_ns ? held_ns : duration_ns; /* an estimate may come to more than there was */
    struct number n, m;

    if (!g->holders) {
        buf_printf(out, "  %-13sby no thread\n", "held");
        return;
    }
    buf_printf(out, "  %-13s", "held");
    put_estimate(held_ns, ran, out);
    if (duration_ns && g->process_count == 1 && !g->subinterpreters)
        buf_printf(out, " (%s of the time)", share_text(most_ns, duration_ns, &n));
    buf_printf(out, " by %s", counted(g->holders, "thread", "threads", &n));
    if (v->has_waits) {
        buf_put_str(out, ": ");
        put_time(ran->ns, out);
        buf_put_str(out, " running, ");
        put_time(off->ns, out);
        buf_put_str(out, " off the CPU\n");
    } else {
        buf_printf(out, ", running, in %s of %s\n", grouped(g->held_samples, &n),
                   counted(g->known_samples, "sample", "samples", &m));
    }
}

/* "  waited for   12.35 s by 4 threads, 4,812 times, exactly; 12.31 s in samples" */
static void put_waited(const struct gil_view *v, const struct gil_group *g, struct buf *out)
{
    const struct gil_sum *waited = &g->sums[GIL_WAITED];
    struct number n, m;

    buf_printf(out, "  %-13s", "waited for");
    if (!v->has_blame && !waited->samples) {
        buf_put_str(out, v->has_waits ? "not known: of the waits in this trace none is told to be for the GIL\n"
                                      : "not in this trace: pycap record --wall records who waits for it\n");
        return;
    }
    if (!waited->samples && !g->exact_ns) {
        buf_put_str(out, "by no thread\n");
        return;
    }
    put_time(g->exact ? g->exact_ns : waited->ns, out);
    buf_printf(out, " by %s", counted(g->exact ? g->exact_waiters : g->waiters, "thread", "threads", &n));
    if (g->exact) {
        buf_printf(out, ", %s, exactly; ", counted(g->exact_count, "time", "times", &m));
        put_time(waited->ns, out);
        buf_put_str(out, " in samples");
    }
    buf_put_u8(out, '\n');
}

static void put_blamed(const struct gil_group *g, struct buf *out)
{
    const struct gil_sum *blamed = &g->sums[GIL_BLAMED];

    if (!blamed->samples)
        return;
    buf_printf(out, "  %-13s", "blamed");
    put_estimate(blamed->ns, blamed, out);
    buf_put_str(out, " on threads that held it: so long others waited for it, until they ran\n");
}

static void put_locked(const struct gil_view *v, const struct gil_group *g, struct buf *out)
{
    buf_printf(out, "  %-13sfree-threaded Python has none", "GIL");
    if (v->has_waits) {
        buf_put_str(out, "; waits for locks, and for the world to stop or go on: ");
        put_time(g->sums[GIL_LOCKED].ns, out);
        buf_put_str(out, " in samples\n");
    } else {
        buf_put_str(out, "; pycap record --wall records waits for locks\n");
    }
}

/* ---- threads ---- */

static void put_cell(uint64_t ns, int columns, struct buf *out)
{
    struct buf text = {0};

    if (ns)
        put_time(ns, &text);
    buf_printf(out, "%*s", columns, ns ? buf_cstr(&text) : "-");
    buf_deinit(&text);
}

/* The rest of a line that has used so many columns: it is cut to fit a terminal. */
static void put_cut(const struct gil_view *v, const struct buf *text, size_t used, struct buf *out)
{
    size_t columns = v->options.terminal.columns, room = SIZE_MAX;

    if (columns)
        room = columns > used + NAME_COLUMNS_LEAST ? columns - used : NAME_COLUMNS_LEAST;
    columns_cut(out, text->data, text->len_bytes, room);
    buf_put_u8(out, '\n');
}

static void put_thread_name(const struct gil_view *v, const struct gil_group *g, const struct gil_thread *t, struct buf *out)
{
    const struct emit_thread *thread = &v->model->threads[t->thread];

    if (g->process == EMIT_PART_ALL) {
        name_owner(v->model, EMIT_MERGE_THREAD, t->thread, out);
    } else {
        size_t from = out->len_bytes;
        name_plain(thread->name, out);
        buf_printf(out, "%s %u", out->len_bytes == from ? "thread" : "", thread->tid);
    }
    if (t->interpreter) {
        buf_put_str(out, ", interpreter ");
        name_plain(t->interpreter, out);
    }
}

/* Columns that the trace has something for, beside the first. */
static size_t put_thread_cells(const struct gil_view *v, const struct gil_thread *t, struct buf *out)
{
    static const struct {
        enum gil_what what;
        const char *title;
    } cells[] = {{GIL_RAN, "ran with it"}, {GIL_OFF, "off CPU with it"}, {GIL_WAITED, "waited for it"}};
    size_t used = 0;

    for (size_t i = 0; v->has_blame && i < sizeof cells / sizeof *cells; i++) {
        int columns = (int)strlen(cells[i].title) + 2;
        used += (size_t)columns;
        if (!t)
            buf_printf(out, "%*s", columns, cells[i].title);
        else if (cells[i].what == GIL_WAITED && t->exact)
            put_cell(t->exact_ns, columns, out);
        else
            put_cell(t->sums[cells[i].what].ns, columns, out);
    }
    buf_put_str(out, "  ");
    return used + 2;
}

static void put_threads(const struct gil_view *v, const struct gil_group *g, struct buf *out)
{
    enum gil_what first = v->has_blame ? GIL_BLAMED : GIL_RAN;
    const struct gil_sum *all = &g->sums[first];
    uint32_t shown = gil_shown(v, g->threads.count);
    struct number n;

    if (!shown)
        return;
    buf_printf(out, "\n  %-*s", INDENT - 4, v->has_blame ? "made others wait" : "ran with it");
    put_thread_cells(v, NULL, out);
    buf_put_str(out, "thread\n");
    for (uint32_t i = 0; i < shown; i++) {
        const struct gil_thread *t = &g->threads.data[i];
        struct buf name = {0};
        amount_put_share(&time_event, t->sums[first].ns, all->ns, TIME_COLUMNS, out);
        amount_put_bar(&v->options.terminal, t->sums[first].ns, g->threads.data[0].sums[first].ns, out);
        size_t used = put_thread_cells(v, t, out);
        put_thread_name(v, g, t, &name);
        put_cut(v, &name, INDENT - 2 + used, out);
        buf_deinit(&name);
    }
    if (shown < g->threads.count)
        buf_printf(out, "and %s (--top 0 lists all)\n", counted(g->threads.count - shown, "more thread", "more threads", &n));
}

static struct error *begin_group(const struct gil_view *v, const struct gil_group *g, bool first)
{
    struct buf text = {0};

    if (!first)
        buf_put_u8(&text, '\n');
    put_title(v, g, &text);
    if (g->has_gil) {
        put_held(v, g, &text);
        put_waited(v, g, &text);
        put_blamed(g, &text);
    }
    if (g->free_threaded)
        put_locked(v, g, &text);
    if (g->has_gil)
        put_threads(v, g, &text);
    return text_write(&text, v->out);
}

/* ---- functions ---- */

static void put_name(const struct gil_view *v, uint32_t frame, struct buf *out)
{
    const struct intern_entry *name = intern_get(&v->texts, v->ids[frame]);

    columns_cut(out, name->data, name->len_bytes, FUNCTION_COLUMNS);
}

/* "blocked in clock_nanosleep" */
static void put_state(const struct gil_state *state, struct buf *out)
{
    static const char *const words[EMIT_WAITS] = {[EMIT_WAIT_NONE] = "running",
                                                  [EMIT_WAIT_BLOCKED] = "blocked",
                                                  [EMIT_WAIT_UNINTERRUPTIBLE] = "blocked, uninterruptibly",
                                                  [EMIT_WAIT_LOCK] = "waiting for a lock",
                                                  [EMIT_WAIT_RUN_QUEUE] = "waiting for a CPU",
                                                  [EMIT_WAIT_PREEMPTED] = "preempted",
                                                  [EMIT_WAIT_STOPPED] = "stopped",
                                                  [EMIT_WAIT_GIL] = "waiting for the GIL",
                                                  [EMIT_WAIT_STOP_THE_WORLD] = "waiting for the world to stop or go on",
                                                  [EMIT_WAIT_ASLEEP] = "asleep",
                                                  [EMIT_WAIT_TASK] = "waiting for a task",
                                                  [EMIT_WAIT_FUTURE] = "waiting for a future",
                                                  [EMIT_WAIT_EVENT_LOOP] = "waiting for the event loop",
                                                  [EMIT_WAIT_OTHER] = "off the CPU"};

    buf_put_str(out, words[state->wait]);
    if (!state->system_call)
        return;
    buf_put_str(out, " in ");
    name_plain(state->system_call, out);
}

/* What the Python function had called: "usleep > clock_nanosleep", the outermost and the innermost ones. */
static void put_native(const struct gil_view *v, const struct gil_frames *f, struct buf *out)
{
    for (size_t i = 0; i < f->native.count; i++) {
        if (i == 1 && f->native.count > FRAMES_SHOWN + 1) {
            buf_put_str(out, " > ...");
            i = f->native.count - FRAMES_SHOWN;
        }
        buf_put_str(out, i ? " > " : "");
        put_name(v, f->native.data[i], out);
    }
}

static void put_detail(const struct gil_view *v, struct buf *line, struct buf *out)
{
    if (line->len_bytes) {
        buf_printf(out, "%*s", INDENT, "");
        put_cut(v, line, INDENT, out);
    }
    buf_clear(line);
}

/* How many of the callers say something: the outermost ones, which start a thread, are the same in all. */
static size_t callers_worth(const struct gil_view *v, const struct gil_frames *f)
{
    size_t count = f->callers.count;

    while (count && !strcmp(name_base(v->model->frames[f->callers.data[count - 1]].file), "threading.py"))
        count--;
    return count;
}

static void put_details(const struct gil_view *v, const struct gil_row *row, enum gil_table table, const struct gil_frames *f,
                        struct buf *out)
{
    const struct gil_state *state = &v->states.data[row->state];
    struct buf line = {0};

    if (table == GIL_WAITERS ? state->wait != EMIT_WAIT_GIL : v->has_blame || state->wait != EMIT_WAIT_NONE)
        put_state(state, &line);
    if (table != GIL_WAITERS && f->native.count) {
        buf_put_str(&line, line.len_bytes ? "; in " : "in ");
        put_native(v, f, &line);
    }
    put_detail(v, &line, out);
    if (row->blamed_ns) {
        buf_put_str(&line, "others waited for ");
        put_time(row->blamed_ns, &line);
        buf_put_str(&line, " meanwhile");
    }
    put_detail(v, &line, out);
    size_t callers = callers_worth(v, f);
    for (size_t i = 0; i < callers && i < FRAMES_SHOWN; i++) {
        buf_put_str(&line, i ? ", " : "called by ");
        put_name(v, f->callers.data[i], &line);
    }
    buf_put_str(&line, callers > FRAMES_SHOWN ? ", ..." : "");
    put_detail(v, &line, out);
    buf_deinit(&line);
}

static void put_row(const struct gil_view *v, const struct gil_group *g, const struct gil_row *row, enum gil_table table,
                    const struct gil_frames *f, struct buf *out)
{
    const struct intern_entry *name = intern_get(&v->texts, row->function);
    struct buf function = {0};

    amount_put_share(&time_event, row->sum.ns, g->all.ns, TIME_COLUMNS, out);
    amount_put_bar(&v->options.terminal, row->sum.ns, g->rows.data[0].sum.ns, out);
    buf_put_str(out, "  ");
    buf_put(&function, name->data, name->len_bytes);
    put_cut(v, &function, INDENT, out);
    buf_deinit(&function);
    put_details(v, row, table, f, out);
}

/* NULL: nothing is said of the table where it has no rows. */
static const char *title_of(const struct gil_view *v, const struct gil_group *g, enum gil_table table)
{
    switch (table) {
    case GIL_HOLDERS:
        return v->has_blame ? "Who held it while others waited, by the time that these lost" : "Who ran with it";
    case GIL_CALLS:
        return "Calls that blocked and did not release it, by their time off the CPU";
    default:
        return !g->has_gil ? "Who waited for locks, or for the world" : g->free_threaded ? "Who waited for it, or for locks" : "Who waited for it";
    }
}

static struct error *table(const struct gil_view *v, const struct gil_group *g, enum gil_table table)
{
    uint32_t shown = gil_shown(v, g->rows.count);
    struct gil_frames frames = {0};
    struct buf text = {0};
    struct number n;
    bool ok = true;

    if (!shown)
        return NULL;
    buf_printf(&text, "\n%s\n", title_of(v, g, table));
    for (uint32_t i = 0; ok && i < shown; i++) {
        ok = gil_frames_of(v, &g->rows.data[i], &frames);
        if (ok)
            put_row(v, g, &g->rows.data[i], table, &frames, &text);
    }
    if (shown < g->rows.count)
        buf_printf(&text, "and %s (--top 0 lists all)\n", counted(g->rows.count - shown, "more row", "more rows", &n));
    gil_frames_deinit(&frames);
    struct error *err = text_write(&text, v->out);
    return ok ? err : err ? err : error_no_memory();
}

static struct error *end_group(const struct gil_view *v, const struct gil_group *g)
{
    (void)v, (void)g;
    return NULL;
}

static struct error *end(const struct gil_view *v)
{
    uint32_t left = v->group_count - gil_shown(v, v->group_count);
    struct number n;

    if (left)
        fprintf(v->out, "\nand %s (--top 0 lists all)\n", counted(left, "other process", "other processes", &n));
    return NULL;
}

const struct gil_writer gil_text_writer = {
    .begin = begin, .begin_group = begin_group, .table = table, .end_group = end_group, .end = end};
