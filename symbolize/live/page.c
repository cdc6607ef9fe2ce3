/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/clock.h"
#include "formats/base/columns.h"
#include "formats/base/size_text.h"
#include "symbolize/live/page_head.h"

enum { LEAST_ROWS = 3, LEAST_COLUMNS = 20, NARROW_COLUMNS = 60, NUMBER_COLUMNS = 10 }; /* of a pid, with what stands around it */

void live_page_deinit(struct live_page *p)
{
    for (size_t i = 0; i < p->lines.cap; i++)
        buf_deinit(&p->lines.data[i].text);
    VEC_DEINIT(&p->lines);
    live_rows_deinit(&p->rows);
}

/* Empty lines, with the memory that they had. */
static bool begin(struct live_page *p, size_t count)
{
    size_t before = p->lines.cap;

    if (!VEC_RESERVE(&p->lines, count))
        return false;
    memset(p->lines.data + before, 0, (p->lines.cap - before) * sizeof *p->lines.data);
    for (size_t i = 0; i < count; i++) {
        buf_clear(&p->lines.data[i].text);
        p->lines.data[i].look = LIVE_PLAIN;
    }
    p->lines.count = count;
    p->used = 0;
    return true;
}

static struct buf *add_line(struct live_page *p, enum live_look look)
{
    struct live_line *line = &p->lines.data[p->used < p->lines.count ? p->used++ : p->lines.count - 1];

    line->look = look;
    return &line->text;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* A share in six columns; nothing where it is nothing. */
static void put_share(struct buf *out, uint64_t part, uint64_t whole)
{
    if (part)
        buf_printf(out, "%6.1f ", share(part, whole));
    else
        buf_put_str(out, "       ");
}

/* The same in less room, for many columns of shares. */
static void put_narrow_share(struct buf *out, uint64_t part, uint64_t whole)
{
    double percent = share(part, whole);

    if (part)
        buf_printf(out, "%5.*f ", percent < 999.5 ? 1 : 0, percent);
    else
        buf_put_str(out, "      ");
}

enum amounts { SECONDS, BYTES, COUNTS };

static enum amounts amounts_of(const struct live_figures *f, const struct live_view *v)
{
    return v->measure == LIVE_WAITED || event_is_time(f->of.kind) || !*f->event ? SECONDS : event_is_bytes(f->of.kind) ? BYTES : COUNTS;
}

/* "1023.9 MiB" would be ten columns. */
static void put_size(struct buf *out, const char *text)
{
    const char *point = strlen(text) > 9 ? strchr(text, '.') : NULL;

    if (point)
        buf_printf(out, "%*.*s%s ", 11 - (int)strlen(point), (int)(point - text), text, point + 2);
    else
        buf_printf(out, "%9s ", text);
}

/* In nine columns. */
static void put_amount(struct buf *out, uint64_t amount, enum amounts are)
{
    double s = (double)amount / (double)NS_PER_S;
    struct size_text size;

    if (are == SECONDS)
        buf_printf(out, "%9.*f ", s < 100000 ? 2 : 0, s);
    else if (are == BYTES)
        put_size(out, size_text(amount, &size));
    else if (amount < 1000000000)
        buf_printf(out, "%9" PRIu64 " ", amount);
    else
        buf_printf(out, "%8.1fG ", (double)amount / 1e9);
}

/* ---- tables ---- */

static const char *mark(const struct live_view *v, enum live_sort sort)
{
    return v->sort == sort ? "*" : " ";
}

static void put_function_titles(struct buf *out, const struct live_view *v, enum amounts are, bool narrow)
{
    const char *unit = are == SECONDS ? " s" : "  ";

    buf_printf(out, " %%self%s%%total%s", mark(v, LIVE_SORT_SELF), mark(v, LIVE_SORT_TOTAL));
    if (!narrow)
        buf_printf(out, "   self%s%s  total%s%s", unit, mark(v, LIVE_SORT_ALL_SELF), unit, mark(v, LIVE_SORT_ALL_TOTAL));
    buf_printf(out, "%s%s%s", v->by_line ? "line" : "function", v->python_only ? " of Python" : "",
               v->measure == LIVE_WAITED ? " that waits" : "");
}

static void put_place(struct buf *out, const struct live_place *place)
{
    buf_put_str(out, place->function);
    if (place->kind == EMIT_PYTHON && place->line)
        buf_printf(out, " (%s:%u)", place->file, place->line);
    else if (place->kind == EMIT_PYTHON)
        buf_printf(out, " (%s)", place->file);
    else if (place->kind == EMIT_KERNEL)
        buf_put_str(out, " [kernel]");
    else if (*place->file && strncmp(place->function, "[", 1) != 0)
        buf_printf(out, *place->file == '[' ? " %s" : " [%s]", place->file);
}

static void put_function_row(struct live_page *p, const struct live_tally *t, const struct live_view *v, const struct live_row *row,
                             bool narrow, struct buf *out)
{
    const struct live_places *places = live_tally_places(t, v->by_line ? LIVE_BY_LINE : LIVE_BY_FUNCTION);
    enum amounts are = amounts_of(live_tally_figures(t), v);

    put_share(out, row->now.self, p->rows.whole_now);
    put_share(out, row->now.total, p->rows.whole_now);
    if (!narrow) {
        put_amount(out, row->all.self, are);
        put_amount(out, row->all.total, are);
    }
    put_place(out, &places->list.data[row->number]);
}

static void put_thread_titles(struct buf *out, const struct live_figures *f, const struct live_view *v, bool narrow)
{
    buf_put_str(out, live_figures_are_cpu(f) || !*f->event ? " %CPU " : "%part ");
    if (!narrow) {
        buf_put_str(out, "%held ");
        if (f->has_waits)
            buf_put_str(out, "%wGIL %lock %runq %wait ");
    }
    bool seconds = amounts_of(f, v) == SECONDS;
    buf_put_str(out, v->measure == LIVE_WAITED ? " waited s " : live_figures_are_cpu(f) ? "    CPU s " : seconds ? "  total s " : "    total ");
    buf_put_str(out, v->table == LIVE_PROCESSES ? "process" : "thread, process");
}

static void put_waits(struct buf *out, const struct live_figures *f, const struct live_deeds *d)
{
    uint64_t gil = d->wait_ns[EMIT_WAIT_GIL], lock = d->wait_ns[EMIT_WAIT_LOCK];
    uint64_t run_queue = d->wait_ns[EMIT_WAIT_RUN_QUEUE] + d->wait_ns[EMIT_WAIT_PREEMPTED];

    put_narrow_share(out, gil, f->length_ns);
    put_narrow_share(out, lock, f->length_ns);
    put_narrow_share(out, run_queue, f->length_ns);
    put_narrow_share(out, d->ns[LIVE_WAITED] - gil - lock - run_queue, f->length_ns);
}

/* A name, as much of it as has room, and its number. */
static void put_name(struct buf *out, const char *name, uint32_t number, size_t room)
{
    enum { LEAST = 15 };

    columns_cut(out, name, strlen(name), room > NUMBER_COLUMNS + LEAST ? room - NUMBER_COLUMNS : LEAST);
    buf_printf(out, " %u", number);
}

static void put_thread_row(const struct live_tally *t, const struct live_view *v, const struct live_row *row, bool narrow,
                           size_t columns, struct buf *out)
{
    const struct live_figures *f = live_tally_figures(t);
    const struct live_thread *thread = &live_tally_threads(t)->list.data[row->number];

    put_narrow_share(out, row->deeds.ns[LIVE_RAN], live_figures_are_cpu(f) ? f->length_ns : f->all.ns[LIVE_RAN]);
    if (!narrow) {
        put_narrow_share(out, row->deeds.gil_held_ns, f->length_ns);
        if (f->has_waits)
            put_waits(out, f, &row->deeds);
    }
    put_amount(out, row->all.self, amounts_of(f, v));
    size_t used = columns_of(out->data, out->len_bytes), room = columns > used ? columns - used : 0;
    if (!row->number) {
        buf_put_str(out, "[others]");
    } else if (v->table == LIVE_PROCESSES) {
        put_name(out, thread->process, thread->pid, room);
    } else {
        size_t process = columns_of(thread->process, strlen(thread->process)) + NUMBER_COLUMNS;
        process = process < room / 2 ? process : room / 2;
        put_name(out, thread->name, thread->tid, room - process);
        buf_put_str(out, ", ");
        put_name(out, thread->process, thread->pid, process);
    }
}

static const char *why_empty(const struct live_figures *f, const struct live_view *v)
{
    if (*v->search)
        return "  no row has that text in its name";
    if (v->measure == LIVE_WAITED)
        return f->has_waits ? "  nothing waited" : "  no waits are recorded: --wall does it";
    if (!*f->event)
        return "  time on CPUs is not recorded: w shows who waits";
    if (!live_figures_are_cpu(f))
        return "  no sample yet";
    return f->has_waits ? "  nothing ran: w shows who waits" : "  nothing ran, and waits are not recorded: --wall does it";
}

static void put_rows(struct live_page *p, const struct live_tally *t, struct live_view *v, size_t left, size_t columns, bool narrow)
{
    const struct live_threads *threads = live_tally_threads(t);
    const struct live_figures *f = live_tally_figures(t);

    p->table_rows = left;
    live_view_fit(v, p->rows.list.count, left);
    if (!p->rows.list.count && f->serial && left)
        buf_put_str(add_line(p, LIVE_PLAIN), why_empty(f, v));
    for (size_t i = v->top; i < p->rows.list.count && i < v->top + left; i++) {
        const struct live_row *row = &p->rows.list.data[i];
        struct buf *out = add_line(p, i == v->cursor && v->table != LIVE_FUNCTIONS ? LIVE_REVERSE : LIVE_PLAIN);
        if (v->table == LIVE_FUNCTIONS)
            put_function_row(p, t, v, row, narrow, out);
        else
            put_thread_row(t, v, row, narrow, columns, out);
    }
    if (v->table == LIVE_FUNCTIONS || v->cursor >= p->rows.list.count)
        return;
    const struct live_thread *thread = &threads->list.data[p->rows.list.data[v->cursor].number];
    p->pick = (struct live_pick){thread->pid, v->table == LIVE_THREADS ? thread->tid : 0};
}

/* The table in what is left of the screen, but for the last line. */
static void put_table(struct live_page *p, const struct live_tally *t, struct live_view *v, size_t columns)
{
    const struct live_figures *f = live_tally_figures(t);
    bool narrow = columns < NARROW_COLUMNS;
    struct buf *titles = add_line(p, LIVE_REVERSE);
    size_t left = p->lines.count - 1 - p->used;

    if (v->table == LIVE_FUNCTIONS)
        put_function_titles(titles, v, amounts_of(f, v), narrow);
    else
        put_thread_titles(titles, f, v, narrow);
    while (columns_of(titles->data, titles->len_bytes) < columns && !titles->bad)
        buf_put_str(titles, " ");
    put_rows(p, t, v, left, columns, narrow);
}

/* Fields of a head's line, with two spaces or more between them: those that have no room are left out, and no figure is cut. */
static void leave_out_fields(struct buf *text, size_t columns)
{
    static const char more[] = "  \xe2\x80\xa6";
    size_t kept = 0;

    if (text->bad || columns_of(text->data, text->len_bytes) <= columns)
        return;
    for (size_t i = 1; i + 1 < text->len_bytes; i++) {
        bool ends = text->data[i] == ' ' && text->data[i + 1] == ' ' && text->data[i - 1] != ' ';
        if (ends && columns_of(text->data, i) + columns_of(more, sizeof more - 1) <= columns)
            kept = i;
    }
    if (!kept) /* the screen cuts it */
        return;
    text->len_bytes = kept;
    buf_put_str(text, more);
}

static void put_help(struct live_page *p)
{
    static const char *const lines[] = {
        "%self, %total: of the last interval; self, total: since the start",
        "",
        " 1 2 3 4   sort by that column (s: by the next one)",
        " f         functions",
        " t p       threads, processes: arrows and Enter choose one, a shows all again",
        " w         time on CPUs, or time that threads waited (pycap --wall)",
        " l         lines instead of functions",
        " y         Python alone",
        " /         rows whose name has a text; Esc forgets it",
        " arrows    scroll; so do Page Up, Page Down, Home, End",
        " Space     stand still, and go on",
        " + -       longer, shorter intervals",
        " Esc       back",
        " q         end",
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines && p->used + 1 < p->lines.count; i++)
        buf_put_str(add_line(p, LIVE_PLAIN), lines[i]);
}

static void put_keys(struct live_page *p, const struct live_view *v, const struct live_figures *f)
{
    struct buf *out;

    p->used = p->lines.count - 1;
    out = add_line(p, LIVE_BOLD);
    if (v->help)
        buf_put_str(out, "any key: back");
    else if (v->searching)
        buf_printf(out, "/%s_", v->search);
    else if (f->ended)
        buf_printf(out, "%s: q ends, ? for keys", f->ending);
    else
        buf_put_str(out, "q end  ? keys  1-4 sort  f t p tables  w waits  l lines  y Python  / search");
}

bool live_page_make(struct live_page *p, struct live_tally *t, struct live_view *v, size_t screen_rows, size_t screen_columns)
{
    bool ok;

    p->pick = (struct live_pick){0};
    if (!begin(p, screen_rows ? screen_rows : 1))
        return false;
    if (screen_rows < LEAST_ROWS || screen_columns < LEAST_COLUMNS) {
        buf_put_str(add_line(p, LIVE_PLAIN), "too small");
        return true;
    }
    live_tally_lock(t);
    const struct live_figures *f = live_tally_figures(t);
    p->serial = f->serial;
    ok = live_rows_make(&p->rows, t, v);
    if (ok && v->help) {
        put_help(p);
    } else if (ok) {
        struct live_head head = {.tally = t, .view = v, .columns = screen_columns};
        size_t room = screen_rows > LIVE_HEAD_LINES + 5 ? LIVE_HEAD_LINES : screen_rows > 7 ? 2 : screen_rows > 4 ? 1 : 0;
        for (size_t i = 0; i < room; i++) {
            /* Lines that say nothing are left out. */
            struct buf *text = &p->lines.data[p->used].text;
            if (!live_head_put(&head, (enum live_head_line)i, text))
                continue;
            leave_out_fields(text, screen_columns);
            add_line(p, LIVE_PLAIN);
        }
        put_table(p, t, v, screen_columns);
    }
    put_keys(p, v, f);
    live_tally_unlock(t);
    for (size_t i = 0; i < p->used; i++)
        ok = ok && !p->lines.data[i].text.bad;
    return ok;
}
