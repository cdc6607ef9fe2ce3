/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/live/rows.h"

#include <stdlib.h>
#include <string.h>

void live_rows_deinit(struct live_rows *r)
{
    VEC_DEINIT(&r->list);
    VEC_DEINIT(&r->by_place);
}

static bool is_chosen(const struct live_view *v, const struct live_thread *thread)
{
    return (!v->pid || v->pid == thread->pid) && (!v->tid || v->tid == thread->tid);
}

/* By what the view sorts, then by the others, so that rows do not change places for nothing. */
static uint64_t sort_key(const struct live_row *row, enum live_sort sort)
{
    switch (sort) {
    case LIVE_SORT_SELF: return row->now.self;
    case LIVE_SORT_TOTAL: return row->now.total;
    case LIVE_SORT_ALL_SELF: return row->all.self;
    default: return row->all.total;
    }
}

static int compare_rows(const void *a, const void *b, void *sort)
{
    static const enum live_sort further[] = {LIVE_SORT_SELF, LIVE_SORT_TOTAL, LIVE_SORT_ALL_SELF, LIVE_SORT_ALL_TOTAL};
    const struct live_row *ra = a, *rb = b;
    uint64_t ka = sort_key(ra, *(const enum live_sort *)sort), kb = sort_key(rb, *(const enum live_sort *)sort);

    for (size_t i = 0; ka == kb && i < sizeof further / sizeof *further; i++) {
        ka = sort_key(ra, further[i]);
        kb = sort_key(rb, further[i]);
    }
    return ka != kb ? (ka < kb) - (ka > kb) : (ra->number > rb->number) - (ra->number < rb->number);
}

static void sort_rows(struct live_rows *r, const struct live_view *v)
{
    enum live_sort sort = v->sort;

    if (r->list.count)
        qsort_r(r->list.data, r->list.count, sizeof *r->list.data, compare_rows, &sort);
}

static bool is_found(const struct live_view *v, const char *text, const char *more)
{
    return !*v->search || strcasestr(text, v->search) || strcasestr(more, v->search);
}

static void add(struct live_weight *to, const struct live_weight *more)
{
    to->self += more->self;
    to->total += more->total;
    to->python += more->python;
}

/* ---- functions and lines ---- */

static bool add_places(struct live_rows *r, const struct live_tally *t, const struct live_view *v)
{
    int by = v->by_line ? LIVE_BY_LINE : LIVE_BY_FUNCTION;
    const struct live_cells *cells = live_tally_cells(t, by);
    const struct live_threads *threads = live_tally_threads(t);
    uint64_t serial = live_tally_figures(t)->serial;

    r->by_place.count = 0;
    if (!VEC_EXTEND_ZERO(&r->by_place, live_tally_places(t, by)->list.count))
        return false;
    for (size_t i = 0; i < cells->list.count; i++) {
        const struct live_cell *cell = &cells->list.data[i];
        if (!is_chosen(v, &threads->list.data[cell->thread]))
            continue;
        struct live_row *row = &r->by_place.data[cell->place];
        struct live_weight now = live_cell_now(cell, serial, v->measure);
        add(&row->now, &now);
        add(&row->all, &cell->all[v->measure]);
    }
    return true;
}

static bool make_places(struct live_rows *r, const struct live_tally *t, const struct live_view *v)
{
    const struct live_places *places = live_tally_places(t, v->by_line ? LIVE_BY_LINE : LIVE_BY_FUNCTION);

    if (!add_places(r, t, v))
        return false;
    for (uint32_t i = 0; i < r->by_place.count; i++) {
        struct live_row row = r->by_place.data[i];
        const struct live_place *place = &places->list.data[i];
        if (!row.all.total && !row.all.self)
            continue;
        if (v->python_only && place->kind != EMIT_PYTHON)
            continue;
        row.number = i;
        row.now.self = v->python_only ? row.now.python : row.now.self;
        row.all.self = v->python_only ? row.all.python : row.all.self;
        if (is_found(v, place->function, place->file) && !VEC_PUSH(&r->list, row))
            return false;
    }
    return true;
}

/* ---- threads and processes ---- */

static void add_deeds(struct live_deeds *to, const struct live_deeds *more)
{
    for (int i = 0; i < LIVE_MEASURES; i++)
        to->ns[i] += more->ns[i];
    for (int i = 0; i < EMIT_WAITS; i++)
        to->wait_ns[i] += more->wait_ns[i];
    to->samples += more->samples;
    to->gil_known_ns += more->gil_known_ns;
    to->gil_held_ns += more->gil_held_ns;
}

static int compare_pids(const void *a, const void *b, void *threads)
{
    const struct live_thread *list = threads;
    uint32_t pa = list[((const struct live_row *)a)->number].pid, pb = list[((const struct live_row *)b)->number].pid;

    return (pa > pb) - (pa < pb);
}

/* Makes one row of those of each process. */
static void join_processes(struct live_rows *r, const struct live_threads *threads)
{
    size_t count = 0;

    if (r->list.count)
        qsort_r(r->list.data, r->list.count, sizeof *r->list.data, compare_pids, threads->list.data);
    for (size_t i = 0; i < r->list.count; i++) {
        const struct live_row *row = &r->list.data[i];
        struct live_row *last = count ? &r->list.data[count - 1] : NULL;
        if (!last || threads->list.data[last->number].pid != threads->list.data[row->number].pid) {
            r->list.data[count++] = *row;
            continue;
        }
        add(&last->now, &row->now);
        add(&last->all, &row->all);
        add_deeds(&last->deeds, &row->deeds);
    }
    r->list.count = count;
}

static bool make_threads(struct live_rows *r, const struct live_tally *t, const struct live_view *v)
{
    const struct live_threads *threads = live_tally_threads(t);
    uint64_t serial = live_tally_figures(t)->serial;

    for (uint32_t i = 0; i < threads->list.count; i++) {
        const struct live_thread *thread = &threads->list.data[i];
        struct live_row row = {.number = i, .deeds = *live_thread_now(thread, serial)};
        row.now.self = row.now.total = row.deeds.ns[v->measure];
        row.all.self = row.all.total = thread->all_ns[v->measure];
        bool is_shown = (thread->all_ns[LIVE_RAN] || thread->all_ns[LIVE_WAITED]) && is_found(v, thread->process, thread->name);
        if (is_shown && !VEC_PUSH(&r->list, row))
            return false;
    }
    if (v->table == LIVE_PROCESSES)
        join_processes(r, threads);
    return true;
}

bool live_rows_make(struct live_rows *r, const struct live_tally *t, const struct live_view *v)
{
    const struct live_threads *threads = live_tally_threads(t);
    uint64_t serial = live_tally_figures(t)->serial;

    r->list.count = 0;
    r->whole_now = 0;
    for (size_t i = 0; i < threads->list.count; i++) {
        if (is_chosen(v, &threads->list.data[i]))
            r->whole_now += live_thread_now(&threads->list.data[i], serial)->ns[v->measure];
    }
    if (!(v->table == LIVE_FUNCTIONS ? make_places : make_threads)(r, t, v))
        return false;
    sort_rows(r, v);
    return true;
}
