/* SPDX-License-Identifier: Apache-2.0 */
/* From samples to spans. The runs of a marker are (start, label set), (end, capture and kind), (0, stack). */
#include "formats/emit/firefox/markers.h"

#include <string.h>

void firefox_markers_deinit(struct firefox_markers *m)
{
    for (size_t i = 0; i < m->threads.count; i++)
        spool_list_deinit(&m->threads.data[i].list);
    limits_give(m->limits, m->threads.count * sizeof *m->threads.data);
    VEC_DEINIT(&m->threads);
}

static struct error *close_span(struct firefox_markers *m, struct firefox_thread_markers *t, enum firefox_marker_kind kind)
{
    struct firefox_span *span = &t->open[kind];

    if (!span->open)
        return NULL;
    span->open = false;
    t->count++;
    TRY(spool_add(m->spool, &t->list, span->label_set, span->start_ns));
    TRY(spool_add(m->spool, &t->list, span->capture * FIREFOX_MARKERS + kind, span->end_ns));
    return spool_add(m->spool, &t->list, span->stack, 0);
}

/* Continues the open span of a kind, if `joins`, or begins another. */
static struct error *extend(struct firefox_markers *m, struct firefox_thread_markers *t, enum firefox_marker_kind kind,
                            const struct firefox_span *span, bool joins)
{
    struct firefox_span *open = &t->open[kind];

    if (open->open && open->capture == span->capture && joins) {
        open->end_ns = span->end_ns > open->end_ns ? span->end_ns : open->end_ns;
        open->label_set = span->label_set; /* who woke a thread is known of the last part of a wait */
        return NULL;
    }
    TRY(close_span(m, t, kind));
    *open = *span;
    return NULL;
}

const struct emit_label_set *firefox_labels_of(const struct emit_model *m, uint32_t label_set)
{
    static const struct emit_label_set none = {0};

    return label_set < m->label_set_count ? &m->label_sets[label_set] : &none;
}

const char *firefox_label(const struct emit_label_set *set, const char *key)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (!strcmp(set->labels[i].key, key))
            return set->labels[i].value;
    }
    return NULL;
}

static bool is_same_task(const struct emit_model *m, uint32_t a, uint32_t b)
{
    const char *task_a = firefox_label(firefox_labels_of(m, a), FIREFOX_LABEL_TASK);
    const char *task_b = firefox_label(firefox_labels_of(m, b), FIREFOX_LABEL_TASK);

    return a == b || (task_a && task_b && !strcmp(task_a, task_b));
}

static struct error *add_sampled(struct firefox_markers *m, struct firefox_thread_markers *t, const struct emit_sample *sample,
                                 const struct firefox_span *span)
{
    const struct firefox_span *task = &t->open[FIREFOX_MARKER_TASK], *gil = &t->open[FIREFOX_MARKER_GIL];
    uint64_t gap = firefox_interval(m->times, sample->event);
    const struct emit_label_set *labels = firefox_labels_of(m->model, span->label_set);

    if (!gap || !limits_work(m->limits, 2 * (uint64_t)labels->count))
        return error_no_memory();
    if (firefox_label(labels, FIREFOX_LABEL_TASK))
        TRY(extend(m, t, FIREFOX_MARKER_TASK, span,
                   is_same_task(m->model, task->label_set, span->label_set) && span->start_ns <= task->end_ns + gap));
    else
        TRY(close_span(m, t, FIREFOX_MARKER_TASK));
    if (sample->gil == EMIT_GIL_HELD)
        return extend(m, t, FIREFOX_MARKER_GIL, span, span->start_ns <= gil->end_ns + gap);
    return sample->gil == EMIT_GIL_NOT_HELD ? close_span(m, t, FIREFOX_MARKER_GIL) : NULL;
}

struct error *firefox_markers_add(struct firefox_markers *m, const struct emit_sample *sample)
{
    const struct emit_event *event = &m->model->events[sample->event];
    uint64_t end = firefox_time_of(m->model, sample);
    uint64_t length = event_has_spans(event->kind) ? sample->value : 0;
    struct firefox_span span = {.open = true,
                                .start_ns = end > length ? end - length : 0,
                                .end_ns = end,
                                .label_set = sample->label_set,
                                .capture = sample->capture,
                                .stack = sample->stack};

    if (event->kind == EVENT_BLAME || event->kind == EVENT_TASK_WAIT || sample->owed) /* stands for others, and has no place in time */
        return NULL;
    if (!VEC_EXTEND_COUNTED(m->limits, &m->threads, (size_t)sample->thread + 1))
        return error_no_memory();
    struct firefox_thread_markers *t = &m->threads.data[sample->thread];
    enum emit_wait wait = firefox_labels_of(m->model, sample->label_set)->wait;
    if (event_has_spans(event->kind) && wait != EMIT_WAIT_NONE) {
        enum emit_wait before = firefox_labels_of(m->model, t->open[FIREFOX_MARKER_WAIT].label_set)->wait;
        TRY(extend(m, t, FIREFOX_MARKER_WAIT, &span, sample->continues && wait == before));
    }
    return add_sampled(m, t, sample, &span);
}

struct error *firefox_markers_end(struct firefox_markers *m)
{
    for (size_t i = 0; i < m->threads.count; i++) {
        for (int kind = 0; kind < FIREFOX_MARKERS; kind++)
            TRY(close_span(m, &m->threads.data[i], kind));
    }
    return NULL;
}
