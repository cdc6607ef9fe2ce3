/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/top_head.h"

#include "formats/base/numbers.h"
#include "formats/emit/names.h"
#include "formats/emit/shown.h"
#include "formats/emit/text_write.h"

enum { HEAD_COLUMNS = 80 }; /* where lines may be of any length */

/* "blocked 6.3 s, lock 2.3 s, on CPU 0.1 s", where there are waits. */
static void put_states(const struct top_view *v, const struct top_event *e, struct buf *out)
{
    uint32_t order[TOP_STATES], count = e->states.waits ? top_states_order(&e->states, e->states.weights, order) : 0;

    for (uint32_t i = 0; i < count; i++) {
        buf_put_str(out, i ? ", " : "");
        name_plain(e->states.names[order[i]], out);
        buf_put_u8(out, ' ');
        name_weight(&v->model->events[e->event], e->states.weights[order[i]], out);
    }
    buf_put_str(out, count ? "\n" : "");
}

/* "gunicorn (4 processes), sh (pid 99) and 3 other processes" */
static void put_programs(const struct top_view *v, const struct top_event *e, struct buf *out)
{
    uint32_t columns = v->options.terminal.columns ? v->options.terminal.columns : HEAD_COLUMNS;
    size_t from = out->len_bytes, i = 0;
    uint32_t left = e->programs.process_count;
    struct number n;

    for (; i < e->programs.list.count; i++) {
        const struct top_program *p = &e->programs.list.data[i];
        const struct intern_entry *name = intern_get(&e->programs.names, p->name);
        struct buf text = {0};
        buf_put_str(&text, i ? ", " : "");
        buf_put(&text, name->data, name->len_bytes);
        if (p->count == 1)
            buf_printf(&text, " (pid %u)", p->pid);
        else
            buf_printf(&text, " (%s)", counted(p->count, "process", "processes", &n));
        bool fits = i == 0 || out->len_bytes - from + text.len_bytes + sizeof " and 1,000 other processes" <= columns;
        if (fits)
            buf_put(out, text.data, text.len_bytes);
        buf_deinit(&text);
        if (!fits)
            break;
        left -= p->count;
    }
    if (left)
        buf_printf(out, " and %s other process%s", grouped(left, &n), left == 1 ? "" : "es");
    buf_put_u8(out, '\n');
}

void top_head_put(const struct top_view *v, const struct top_event *e, struct buf *out)
{
    shown_put_samples(v->model, e->event, e->all.samples, e->all.weight, out);
    put_states(v, e, out);
    put_programs(v, e, out);
    shown_put_totals(v->model, e->event, out);
}

void top_owner_put(const struct top_view *v, const struct top_event *e, const struct top_table *t, struct buf *out)
{
    const struct emit_model *m = v->model;
    struct number n;

    if (v->options.merge == EMIT_MERGE_ALL)
        return;
    name_owner(m, v->options.merge, t->owner, out);
    buf_put_str(out, ": ");
    name_weight(&m->events[e->event], t->all.weight, out);
    buf_printf(out, ", %s\n", share_text(t->all.weight, e->all.weight, &n));
}

struct error *top_head_begin(const struct top_view *v)
{
    (void)v;
    return NULL;
}

struct error *top_head_write(const struct top_view *v, const struct top_event *e, bool first)
{
    struct buf text = {0};

    if (!first)
        buf_put_u8(&text, '\n');
    top_head_put(v, e, &text);
    return text_write(&text, v->out);
}

void top_rest_put(const struct top_view *v, const struct top_event *e, struct buf *out)
{
    uint32_t left = e->table_count - top_shown(v, e->table_count);
    bool by_thread = v->options.merge == EMIT_MERGE_THREAD;
    struct number n;

    if (left)
        buf_printf(out, "\nand %s (--top 0 lists all)\n",
                   by_thread ? counted(left, "other thread", "other threads", &n)
                             : counted(left, "other process", "other processes", &n));
}

struct error *top_head_end_event(const struct top_view *v, const struct top_event *e)
{
    struct buf text = {0};

    top_rest_put(v, e, &text);
    return text_write(&text, v->out);
}

struct error *top_head_end(const struct top_view *v, bool empty)
{
    if (empty)
        fputs("0 samples\n", v->out);
    return NULL;
}
