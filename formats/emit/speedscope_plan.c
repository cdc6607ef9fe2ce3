/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/speedscope_plan.h"

#include <stdlib.h>

#include "formats/emit/event_order.h"
#include "formats/emit/names.h"
#include "formats/emit/shown.h"
#include "formats/emit/speedscope_labels.h"

enum {
    THREADS_MOST = 50,         /* with profiles of their own, for each event */
    THREADS_LEAST_SHARE = 1000 /* the smallest that has one weighs a thousandth of its event */
};

/* ---- order ---- */

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static uint32_t process_of(const struct emit_model *m, const struct speedscope_series *s)
{
    return m->threads[s->thread].process;
}

/* By process, thread, event, in the model's order. */
static int compare_in_model(const void *a, const void *b, void *arg)
{
    const struct speedscope_series *sa = a, *sb = b;
    int order = compare_numbers(process_of(arg, sa), process_of(arg, sb));

    if (!order)
        order = compare_numbers(sa->thread, sb->thread);
    return order ? order : compare_numbers(sa->event, sb->event);
}

static int compare_weights(const void *a, const void *b, void *arg)
{
    const struct speedscope_series *sa = a, *sb = b;
    int order = event_order(arg, sa->event, sb->event);

    if (!order)
        order = compare_numbers(sb->weight, sa->weight);
    return order ? order : compare_in_model(a, b, arg);
}

static int compare_processes(const void *a, const void *b, void *arg)
{
    const struct speedscope_series *sa = a, *sb = b;
    int order = event_order(arg, sa->event, sb->event);

    return order ? order : compare_in_model(a, b, arg);
}

/* Profiles of processes, whose series are sorted by compare_processes(). */
static int compare_profiles(const void *a, const void *b, void *arg)
{
    const struct speedscope_plan *p = arg;
    const struct speedscope_profile *pa = a, *pb = b;
    int order = event_order(p->model, pa->event, pb->event);

    if (!order)
        order = compare_numbers(pb->weight, pa->weight);
    return order ? order : compare_numbers(pa->first, pb->first);
}

/* ---- choice ---- */

static struct error *add_profile(struct speedscope_plan *p, enum speedscope_kind kind, size_t first, size_t count)
{
    struct speedscope_profile profile = {.kind = kind, .event = p->series[first].event, .first = first, .count = count};

    for (size_t i = first; i < first + count; i++)
        profile.weight += p->series[i].weight;
    return VEC_PUSH(&p->profiles, profile) ? NULL : error_no_memory();
}

/* The end of the series that share an event, and a process too if asked for. */
static size_t range_end(const struct speedscope_plan *p, size_t first, size_t count, bool by_process)
{
    const struct speedscope_series *s = p->series;
    size_t end = first + 1;

    while (end < count && s[end].event == s[first].event &&
           (!by_process || process_of(p->model, &s[end]) == process_of(p->model, &s[first])))
        end++;
    return end;
}

static struct error *add_ranges(struct speedscope_plan *p, enum speedscope_kind kind, size_t count)
{
    for (size_t i = 0, end; i < count; i = end) {
        end = range_end(p, i, count, kind == SPEEDSCOPE_PROCESS);
        /* A view over all of one thread would be that thread's again. */
        if (p->merge != EMIT_MERGE_DEFAULT || end - i > 1)
            TRY(add_profile(p, kind, i, end - i));
    }
    return NULL;
}

/* The threads of one event. */
static struct error *add_threads(struct speedscope_plan *p, size_t first, size_t end)
{
    uint64_t weight = 0;
    size_t i = first;

    for (size_t k = first; k < end; k++)
        weight += p->series[k].weight;
    for (; i < end && i - first < THREADS_MOST && p->series[i].weight >= weight / THREADS_LEAST_SHARE; i++)
        TRY(add_profile(p, SPEEDSCOPE_THREAD, i, 1));
    return i == end ? NULL : add_profile(p, end - i == 1 ? SPEEDSCOPE_THREAD : SPEEDSCOPE_OTHERS, i, end - i);
}

static struct error *add_default(struct speedscope_plan *p, size_t count)
{
    TRY(add_ranges(p, SPEEDSCOPE_ALL, count));
    for (size_t i = 0, end; i < count; i = end) {
        end = range_end(p, i, count, false);
        TRY(add_threads(p, i, end));
    }
    return NULL;
}

/* Weights of different units do not compare; those of time go before others. */
static size_t heaviest(const struct speedscope_plan *p)
{
    size_t best = 0;

    for (size_t i = 1; i < p->profiles.count; i++) {
        const struct speedscope_profile *a = &p->profiles.data[i], *b = &p->profiles.data[best];
        bool a_time = event_is_time(p->model->events[a->event].kind), b_time = event_is_time(p->model->events[b->event].kind);
        if (a_time != b_time ? a_time : a->weight > b->weight)
            best = i;
    }
    return best;
}

struct error *speedscope_plan_init(struct speedscope_plan *p, const struct emit_model *model, enum emit_merge merge,
                                   struct speedscope_series *series, size_t count)
{
    int (*const orders[])(const void *, const void *, void *) = {[EMIT_MERGE_DEFAULT] = compare_weights,
                                                                  [EMIT_MERGE_ALL] = compare_weights,
                                                                  [EMIT_MERGE_PROCESS] = compare_processes,
                                                                  [EMIT_MERGE_THREAD] = compare_in_model};

    *p = (struct speedscope_plan){.model = model, .merge = merge, .series = series};
    if (!count)
        return NULL;
    for (size_t i = 1; i < count; i++)
        p->several_events |= series[i].event != series[0].event;
    qsort_r(series, count, sizeof *series, orders[merge], (void *)model);
    switch (merge) {
    case EMIT_MERGE_DEFAULT:
        return add_default(p, count);
    case EMIT_MERGE_ALL:
        return add_ranges(p, SPEEDSCOPE_ALL, count);
    case EMIT_MERGE_PROCESS:
        TRY(add_ranges(p, SPEEDSCOPE_PROCESS, count));
        qsort_r(p->profiles.data, p->profiles.count, sizeof *p->profiles.data, compare_profiles, p);
        return NULL;
    case EMIT_MERGE_THREAD:
        for (size_t i = 0; i < count; i++)
            TRY(add_profile(p, SPEEDSCOPE_THREAD, i, 1));
        p->active = heaviest(p);
        return NULL;
    }
    return NULL;
}

void speedscope_plan_deinit(struct speedscope_plan *p)
{
    VEC_DEINIT(&p->profiles);
}

struct error *speedscope_plan_add_labels(struct speedscope_plan *p, const struct speedscope_labels *labels)
{
    p->labels = labels;
    for (size_t i = 0; i < labels->values.count; i++) {
        const struct speedscope_value *value = &labels->values.data[i];
        struct speedscope_profile profile = {
            .kind = SPEEDSCOPE_LABEL, .event = value->event, .first = i, .weight = value->weight};
        if (!VEC_PUSH(&p->profiles, profile))
            return error_no_memory();
    }
    return NULL;
}

bool speedscope_plan_is_overview(const struct speedscope_plan *p, const struct speedscope_profile *profile)
{
    return profile->kind == SPEEDSCOPE_LABEL || (profile->kind == SPEEDSCOPE_ALL && p->merge == EMIT_MERGE_DEFAULT);
}

/* ---- names ---- */

/* "comm-pid thread tid". */
static void put_plain_thread(const struct emit_model *m, const struct emit_thread *thread, struct buf *out)
{
    name_process(&m->processes[thread->process], out);
    if (*thread->name) {
        buf_put_u8(out, ' ');
        name_plain(thread->name, out);
    }
    buf_printf(out, " %u", thread->tid);
}

void speedscope_plan_name(const struct speedscope_plan *p, const struct speedscope_profile *profile, struct buf *out)
{
    const struct emit_model *m = p->model;
    const struct emit_event *event = &m->events[profile->event];
    uint32_t thread = profile->kind == SPEEDSCOPE_LABEL ? 0 : p->series[profile->first].thread;
    bool old = p->merge == EMIT_MERGE_THREAD;

    switch (profile->kind) {
    case SPEEDSCOPE_ALL:
        buf_put_str(out, "all threads (");
        if (m->totals && *m->filters)
            shown_put(m, profile->event, out);
        else
            name_weight(event, profile->weight, out);
        buf_put_u8(out, ')');
        break;
    case SPEEDSCOPE_PROCESS:
        name_owner(m, EMIT_MERGE_PROCESS, m->threads[thread].process, out);
        break;
    case SPEEDSCOPE_THREAD:
        if (old)
            put_plain_thread(m, &m->threads[thread], out);
        else
            name_owner(m, EMIT_MERGE_THREAD, thread, out);
        break;
    case SPEEDSCOPE_OTHERS:
        buf_printf(out, "%zu other threads", profile->count);
        break;
    case SPEEDSCOPE_LABEL: {
        const struct intern_entry *name = intern_get(&p->labels->names, p->labels->values.data[profile->first].name);
        buf_put(out, name->data, name->len_bytes);
        break;
    }
    }
    /* The unit alone tells events of time, if there is one only. */
    if (p->several_events || !event_is_time(event->kind)) {
        buf_put_str(out, old ? " " : " \xc2\xb7 ");
        name_word(event->name, out);
    }
}
