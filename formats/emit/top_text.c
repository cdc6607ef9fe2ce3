/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top as text. A head says what was recorded; then come rows such as
 *
 *      self    time              total    time  function
 *     23.4%  1.71 s ########     45.1%  3.29 s  Formatter.format (logging/__init__.py:42)
 *
 * Of an event of waits a row also says how far the total may be off, and what the waits were for, before the function.
 *
 * On a terminal, names are cut in the middle to fit a line, and colours tell Python, native and kernel functions.
 */
#include <string.h>

#include "formats/base/buf.h"
#include "formats/base/columns.h"
#include "formats/base/numbers.h"
#include "formats/emit/amounts.h"
#include "formats/emit/layer_colours.h"
#include "formats/emit/names.h"
#include "formats/emit/text_write.h"
#include "formats/emit/top.h"
#include "formats/emit/top_head.h"

enum {
    NAME_COLUMNS_LEAST = 16, /* of a narrow terminal; its lines wrap */
    STATE_COLUMNS_MOST = 40, /* the two longest names of states, with their shares */
};

static enum emit_frame_kind layer_of(const struct top_view *v, const struct top_row *row)
{
    return row->frame == TOP_NO_FRAME ? EMIT_MARK : v->model->frames[row->frame].kind;
}

/* ---- rows ---- */

/* Of columns, for all rows of a table. */
struct widths {
    int weight, error, state; /* 0: there is no such column */
};

/* The columns of the weights: as wide as the widest of them needs. */
static int weight_columns(const struct top_view *v, const struct top_event *e, const struct top_table *t, uint32_t rows)
{
    const struct emit_event *event = &v->model->events[e->event];
    struct buf text = {0};
    size_t most = 0;

    name_unit(event, &text);
    most = columns_of(text.data, text.len_bytes);
    for (uint32_t i = 0; i < rows; i++) {
        buf_clear(&text);
        amount_put(event, t->rows[i].total.weight, t->all.weight, &text);
        most = text.len_bytes > most ? text.len_bytes : most;
    }
    buf_deinit(&text);
    return (int)most;
}

/* The standard error of a row's total; nothing if it is too small to be seen. */
static void put_error(const struct top_view *v, const struct top_event *e, const struct top_table *t, const struct top_row *row,
                      struct buf *out)
{
    struct buf none = {0}, text = {0};

    amount_put(&v->model->events[e->event], 0, t->all.weight, &none);
    amount_put(&v->model->events[e->event], top_errors_of(&v->errors, row->name), t->all.weight, &text);
    if (strcmp(buf_cstr(&none), buf_cstr(&text)))
        buf_printf(out, "\xc2\xb1%s", buf_cstr(&text));
    buf_deinit(&none);
    buf_deinit(&text);
}

static int error_columns(const struct top_view *v, const struct top_event *e, const struct top_table *t, uint32_t rows)
{
    struct buf text = {0};
    size_t most = 0;

    for (uint32_t i = 0; top_has_errors(v, e->event) && i < rows; i++) {
        buf_clear(&text);
        put_error(v, e, t, &t->rows[i], &text);
        size_t columns = columns_of(text.data, text.len_bytes);
        most = columns > most ? columns : most;
    }
    buf_deinit(&text);
    return (int)most;
}

/* Right-aligned; the sign is one column, and two bytes. */
static void put_error_column(const struct buf *text, int columns, struct buf *out)
{
    buf_printf(out, "%*s", columns - (int)columns_of(text->data, text->len_bytes), "");
    buf_put(out, text->data, text->len_bytes);
    buf_put_str(out, "  ");
}

/* What the threads of a row did, in the time that rows are sorted by; of a row without any such time, in all of its time. */
static void put_state(const struct top_view *v, const struct top_event *e, const struct top_row *row, struct buf *out)
{
    const struct top_state_weights *weights = &e->states.rows[row->name];
    bool by_total = v->options.sort == EMIT_SORT_TOTAL || !row->self.weight;

    top_states_put(&e->states, by_total ? weights->total : weights->self, out);
}

/* 0: the table has no such column. */
static int state_columns(const struct top_view *v, const struct top_event *e, const struct top_table *t, uint32_t rows)
{
    struct buf text = {0};
    size_t most = sizeof "state" - 1;

    if (!e->states.rows)
        return 0;
    for (uint32_t i = 0; i < rows; i++) {
        buf_clear(&text);
        put_state(v, e, &t->rows[i], &text);
        most = text.len_bytes > most ? text.len_bytes : most;
    }
    buf_deinit(&text);
    return (int)(most < STATE_COLUMNS_MOST ? most : STATE_COLUMNS_MOST);
}

static void put_titles(const struct top_view *v, const struct top_event *e, struct widths widths, struct buf *out)
{
    int columns = widths.weight;
    bool by_total = v->options.sort == EMIT_SORT_TOTAL;
    struct buf unit = {0};

    name_unit(&v->model->events[e->event], &unit);
    buf_printf(out, "%7s %*s", "self", columns, buf_cstr(&unit));
    buf_printf(out, "%*s", by_total ? 1 : AMOUNT_BAR_COLUMNS + 2, "");
    buf_printf(out, "%7s %*s", "total", columns, buf_cstr(&unit));
    buf_printf(out, "%*s", by_total ? AMOUNT_BAR_COLUMNS + 3 : 2, "");
    if (widths.error)
        buf_printf(out, "%*s  ", widths.error + 1, "\xc2\xb1");
    if (widths.state)
        buf_printf(out, "%-*s  ", widths.state, "state");
    buf_put_str(out, v->options.by == EMIT_BY_LINE ? "line" : "function");
    if (v->options.terminal.colours) {
        buf_put_str(out, ": ");
        layer_colours_put(&v->options.terminal, out);
    }
    buf_put_u8(out, '\n');
    buf_deinit(&unit);
}

static void put_row(const struct top_view *v, const struct top_event *e, const struct top_table *t,
                    const struct top_row *row, struct widths widths, struct buf *out)
{
    int columns = widths.weight;
    bool by_total = v->options.sort == EMIT_SORT_TOTAL;
    uint64_t longest = by_total ? t->rows[0].total.weight : t->rows[0].self.weight;
    size_t used = (size_t)(2 * columns + 2 * 8 + AMOUNT_BAR_COLUMNS + 4), room = SIZE_MAX;
    used += (size_t)((widths.error ? widths.error + 2 : 0) + (widths.state ? widths.state + 2 : 0));

    if (v->options.terminal.columns)
        room = v->options.terminal.columns > used + NAME_COLUMNS_LEAST ? v->options.terminal.columns - used
                                                                        : NAME_COLUMNS_LEAST;
    const struct intern_entry *name = intern_get(&v->texts, row->name);

    amount_put_share(&v->model->events[e->event], row->self.weight, t->all.weight, columns, out);
    buf_put_str(out, layer_colour(&v->options.terminal, layer_of(v, row)));
    if (!by_total)
        amount_put_bar(&v->options.terminal, row->self.weight, longest, out);
    buf_put_str(out, layer_colour_end(&v->options.terminal));
    buf_put_u8(out, ' ');
    amount_put_share(&v->model->events[e->event], row->total.weight, t->all.weight, columns, out);
    buf_put_str(out, layer_colour(&v->options.terminal, layer_of(v, row)));
    if (by_total)
        amount_put_bar(&v->options.terminal, row->total.weight, longest, out);
    buf_put_str(out, "  ");
    if (widths.error) {
        struct buf error = {0};
        put_error(v, e, t, row, &error);
        put_error_column(&error, widths.error, out);
        buf_deinit(&error);
    }
    if (widths.state) {
        struct buf state = {0};
        put_state(v, e, row, &state);
        buf_printf(out, "%-*.*s  ", widths.state, widths.state, buf_cstr(&state));
        buf_deinit(&state);
    }
    columns_cut(out, name->data, name->len_bytes, room);
    buf_put_str(out, layer_colour_end(&v->options.terminal));
    buf_put_u8(out, '\n');
}

/* "and 131 more functions, with 12.3 % of the time (--top 0 lists all)"; where total decides, their share says little. */
static void put_rest(const struct top_view *v, const struct top_event *e, const struct top_table *t, struct buf *out)
{
    bool by_line = v->options.by == EMIT_BY_LINE;
    uint32_t shown = top_shown(v, t->row_count);
    uint64_t rest = t->all.weight;
    struct number n, s;

    if (shown == t->row_count)
        return;
    for (uint32_t i = 0; i < shown; i++)
        rest -= t->rows[i].self.weight;
    buf_printf(out, "and %s more %s%s", grouped(t->row_count - shown, &n), by_line ? "line" : "function",
               t->row_count - shown == 1 ? "" : "s");
    if (rest && v->options.sort == EMIT_SORT_SELF) {
        buf_printf(out, ", with %s of the ", share_text(rest, t->all.weight, &s));
        name_unit(&v->model->events[e->event], out);
    }
    buf_put_str(out, " (--top 0 lists all)\n");
}

static struct error *table(const struct top_view *v, const struct top_event *e, const struct top_table *t, bool first)
{
    uint32_t shown = top_shown(v, t->row_count);
    const struct widths widths = {.weight = weight_columns(v, e, t, shown), .error = error_columns(v, e, t, shown),
                                  .state = state_columns(v, e, t, shown)};
    struct buf text = {0};

    (void)first;
    buf_put_u8(&text, '\n');
    top_owner_put(v, e, t, &text);
    put_titles(v, e, widths, &text);
    for (uint32_t i = 0; i < shown; i++)
        put_row(v, e, t, &t->rows[i], widths, &text);
    put_rest(v, e, t, &text);
    return text_write(&text, v->out);
}

const struct top_writer top_text_writer = {
    .begin = top_head_begin, .begin_event = top_head_write, .table = table, .end_event = top_head_end_event, .end = top_head_end};
