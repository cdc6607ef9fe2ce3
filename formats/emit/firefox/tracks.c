/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/firefox/tracks.h"

#include <stdlib.h>

#include "formats/base/map.h"
#include "formats/emit/event_order.h"
#include "formats/emit/firefox/strings.h"

enum { ROW_WORK = 10 }; /* see limits.h */
/* Bits of a sample in the spool. A span is as long as the sample's value. */
enum { IS_SPAN = 1, IS_ON_CPU = 2 };

void firefox_tracks_deinit(struct firefox_tracks *t)
{
    for (size_t i = 0; i < t->series.count; i++)
        spool_list_deinit(&t->series.data[i].samples);
    limits_give(t->limits, t->series.count * 2 * sizeof(struct firefox_series));
    VEC_DEINIT(&t->series);
    intern_deinit(&t->keys);
    VEC_DEINIT(&t->list);
}

/* ---- collecting ---- */

/* NULL: out of memory. */
static struct firefox_series *series_of(struct firefox_tracks *t, const struct emit_sample *sample)
{
    const uint32_t key[] = {sample->thread, sample->event, sample->capture};
    struct firefox_series *recent = t->series.count ? &t->series.data[t->recent] : NULL;
    bool added;

    if (recent && recent->thread == key[0] && recent->event == key[1] && recent->capture == key[2])
        return recent;
    uint32_t id = intern_id(&t->keys, key, sizeof key, &added);
    if (id == INTERN_NONE)
        return NULL;
    struct firefox_series series = {.thread = key[0], .event = key[1], .capture = key[2]};
    if (added && (!limits_take(t->limits, 2 * sizeof series) || !VEC_PUSH(&t->series, series)))
        return NULL;
    t->recent = id;
    return &t->series.data[id];
}

/* What was not measured for itself, but stands for others, has no place in time. */
static uint32_t flags_of(const struct emit_model *m, const struct emit_sample *sample)
{
    const struct emit_event *event = &m->events[sample->event];
    bool waits = event->kind == EVENT_OFF_CPU ||
                 (sample->label_set < m->label_set_count && m->label_sets[sample->label_set].wait != EMIT_WAIT_NONE);

    if (!event_has_spans(event->kind) || sample->owed)
        return 0;
    return waits ? IS_SPAN : IS_SPAN | IS_ON_CPU;
}

struct error *firefox_tracks_add(struct firefox_tracks *t, const struct emit_sample *sample)
{
    struct firefox_series *series = series_of(t, sample);

    if (!series)
        return error_no_memory();
    series->weight = sample->value > UINT64_MAX - series->weight ? UINT64_MAX : series->weight + sample->value;
    TRY(spool_add(t->spool, &series->samples, sample->stack, sample->value));
    return spool_add(t->spool, &series->samples, flags_of(t->model, sample), firefox_time_of(t->model, sample));
}

/* ---- order ---- */

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Brings the series of a track together, in the order in which their captures were made. */
static int compare_series(const void *a, const void *b, void *arg)
{
    const struct emit_model *m = arg;
    const struct firefox_series *sa = a, *sb = b;
    int order = compare(sa->thread, sb->thread);

    if (!order)
        order = compare(sa->event, sb->event);
    if (!order)
        order = compare(firefox_capture_start(m, sa->capture), firefox_capture_start(m, sb->capture));
    return order ? order : compare(sa->capture, sb->capture);
}

/* What tracks are sorted by: weights of one event do not compare with those of others. */
struct sorting {
    const struct emit_model *model;
    uint32_t event;            /* the first in the order of events */
    const uint64_t *processes; /* weights of that event, by process and by thread */
    const uint64_t *threads;
};

static int compare_tracks(const void *a, const void *b, void *arg)
{
    const struct sorting *s = arg;
    const struct emit_model *m = s->model;
    const struct firefox_track *ta = a, *tb = b;
    const struct emit_thread *na = &m->threads[ta->thread], *nb = &m->threads[tb->thread];
    int order = compare(s->processes[nb->process], s->processes[na->process]);

    if (!order)
        order = compare(na->process, nb->process);
    if (!order)
        order = compare(nb->tid == m->processes[nb->process].pid, na->tid == m->processes[na->process].pid);
    if (!order)
        order = compare(s->threads[tb->thread], s->threads[ta->thread]);
    if (!order)
        order = compare(ta->thread, tb->thread);
    return order ? order : event_order(m, ta->event, tb->event);
}

static struct error *list_tracks(struct firefox_tracks *t)
{
    const struct firefox_series *s = t->series.data;

    for (size_t i = 0, end; i < t->series.count; i = end) {
        struct firefox_track track = {.thread = s[i].thread, .event = s[i].event, .first = i};
        for (end = i; end < t->series.count && s[end].thread == track.thread && s[end].event == track.event; end++)
            track.weight = s[end].weight > UINT64_MAX - track.weight ? UINT64_MAX : track.weight + s[end].weight;
        track.count = end - i;
        if (!VEC_PUSH(&t->list, track))
            return error_no_memory();
    }
    return NULL;
}

struct error *firefox_tracks_sort(struct firefox_tracks *t)
{
    const struct emit_model *m = t->model;

    if (!t->series.count)
        return NULL;
    if (!limits_work(t->limits, t->series.count * (200 + 20 * (uint64_t)m->capture_count)))
        return error_no_memory();
    qsort_r(t->series.data, t->series.count, sizeof *t->series.data, compare_series, (void *)m);
    TRY(list_tracks(t));
    uint32_t first = t->list.data[0].event;
    for (size_t i = 1; i < t->list.count; i++)
        first = event_order(m, t->list.data[i].event, first) < 0 ? t->list.data[i].event : first;
    uint64_t *processes = calloc((size_t)m->process_count + 1, sizeof *processes);
    uint64_t *threads = calloc((size_t)m->thread_count + 1, sizeof *threads);
    if (processes && threads) {
        for (size_t i = 0; i < t->list.count; i++) {
            const struct firefox_track *track = &t->list.data[i];
            if (track->event != first)
                continue;
            processes[m->threads[track->thread].process] += track->weight;
            threads[track->thread] += track->weight;
        }
        struct sorting sorting = {m, first, processes, threads};
        qsort_r(t->list.data, t->list.count, sizeof *t->list.data, compare_tracks, &sorting);
    }
    struct error *err = processes && threads ? NULL : error_no_memory();
    free(processes);
    free(threads);
    return err;
}

/* ---- rows ---- */

void firefox_rows_deinit(struct firefox_rows *r)
{
    spool_reader_deinit(&r->reader);
}

/* A sample as it was kept. */
struct kept {
    uint64_t value, time_ns;
    uint32_t stack, flags;
};

/* *found false: the track has no more. */
static struct error *next_sample(struct firefox_rows *r, struct kept *sample, bool *found)
{
    const struct spool_run *run = NULL;

    *found = false;
    for (;;) {
        if (r->reading)
            TRY(spool_next(&r->reader, &run));
        if (run)
            break;
        spool_reader_deinit(&r->reader);
        r->reading = r->next_series < r->track->count;
        if (!r->reading)
            return NULL;
        const struct firefox_series *series = &r->tracks->series.data[r->track->first + r->next_series++];
        r->reader = (struct spool_reader){.spool = r->tracks->spool, .list = &series->samples};
        r->capture_start_ns = firefox_capture_start(r->tracks->model, series->capture);
    }
    sample->value = run->weight;
    sample->stack = run->stack;
    TRY(spool_next(&r->reader, &run));
    sample->time_ns = r->capture_start_ns + (run ? run->weight : 0);
    sample->flags = run ? run->stack : 0;
    *found = run;
    return NULL;
}

static void queue(struct firefox_rows *r, struct firefox_row row)
{
    r->queue[r->queue_count++] = row;
}

/* CPU time for a stretch of so many nanoseconds. */
static uint64_t take_cpu(struct firefox_rows *r, uint64_t length_ns)
{
    uint64_t cpu_ns = r->cpu_ns < length_ns ? r->cpu_ns : length_ns;

    r->cpu_ns -= cpu_ns;
    return cpu_ns;
}

/* That of the span of the last sample. */
static uint64_t take_last_cpu(struct firefox_rows *r)
{
    return r->last_on_cpu ? take_cpu(r, r->last_end_ns - r->last.time_ns) : 0;
}

/* Ends the span of the last sample. */
static void queue_end(struct firefox_rows *r)
{
    queue(r, (struct firefox_row){
                 .has_stack = true, .stack = r->last.stack, .time_ns = r->last_end_ns, .cpu_ns = take_last_cpu(r)});
    queue(r, (struct firefox_row){.time_ns = r->last_end_ns});
}

static void queue_sample(struct firefox_rows *r, const struct kept *sample, uint64_t interval_ns)
{
    uint64_t length = sample->flags & IS_SPAN ? sample->value : 0;
    uint64_t end = sample->time_ns > r->last_end_ns ? sample->time_ns : r->last_end_ns;
    uint64_t start = sample->time_ns > length ? sample->time_ns - length : 0, cpu_ns = 0;

    if (start < r->last_end_ns)
        start = r->last_end_ns;
    if (r->has_last && (sample->flags & IS_SPAN) && start - r->last_end_ns > interval_ns)
        queue_end(r);
    else if (r->has_last)
        cpu_ns = take_last_cpu(r);
    if (r->has_last)
        cpu_ns += take_cpu(r, start - r->last_end_ns);
    r->last = (struct firefox_row){
        .has_stack = true, .stack = sample->stack, .time_ns = start, .weight = sample->value, .cpu_ns = cpu_ns};
    queue(r, r->last);
    r->has_last = true;
    r->last_end_ns = end;
    r->last_on_cpu = sample->flags & IS_ON_CPU;
    r->cpu_ns += r->last_on_cpu ? length : 0;
}

struct error *firefox_rows_next(struct firefox_rows *r, const struct firefox_row **row)
{
    uint64_t interval_ns = firefox_interval(r->tracks->times, r->track->event);
    struct kept sample;
    bool found;

    *row = NULL;
    if (!interval_ns || !limits_work(r->tracks->limits, ROW_WORK))
        return error_no_memory();
    if (r->queue_next == r->queue_count && !r->ended) {
        r->queue_next = r->queue_count = 0;
        TRY(next_sample(r, &sample, &found));
        if (found)
            queue_sample(r, &sample, interval_ns);
        else if (r->has_last && event_is_time(r->tracks->model->events[r->track->event].kind))
            queue_end(r);
        r->ended = !found;
    }
    if (r->queue_next < r->queue_count)
        *row = &r->queue[r->queue_next++];
    return NULL;
}
