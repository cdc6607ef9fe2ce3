/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/html/head.h"

#include "formats/base/map.h"
#include "formats/emit/html/captures.h"
#include "formats/emit/html/rows.h"
#include "formats/emit/html/texts.h"
#include "formats/emit/json.h"

struct writer {
    const struct html_head *head;
    const struct emit_model *model;
    struct html_rows rows;
};

static struct error *put_events(struct writer *w)
{
    const struct emit_model *m = w->model;

    for (uint32_t i = 0; i < m->event_count; i++) {
        const struct emit_event *e = &m->events[i];
        uint64_t period = i < w->head->period_count ? w->head->periods[i] : HTML_NO_PERIOD;
        json_t *object = json_object();
        bool ok = object && json_set_name(object, "name", e->name) && json_set_name(object, "unit", e->unit) &&
                  json_set(object, "isTime", json_boolean(event_is_time(e->kind))) &&
                  json_set(object, "isWaiting", json_boolean(event_is_waiting(e->kind))) &&
                  json_set(object, "isWall", json_boolean(e->kind == EVENT_WALL_TIME)) &&
                  json_set(object, "isBlame", json_boolean(e->kind == EVENT_BLAME)) &&
                  json_set(object, "isTask", json_boolean(e->kind == EVENT_TASK_WAIT)) &&
                  json_set(object, "isBytes", json_boolean(event_is_bytes(e->kind))) &&
                  json_set(object, "isCounted", json_boolean(event_is_counted(e->kind))) &&
                  json_set(object, "period", json_number(period == HTML_NO_PERIOD ? 0 : period));
        TRY(html_rows_put(&w->rows, object, ok));
    }
    return NULL;
}

static struct error *put_totals(struct writer *w)
{
    const struct emit_model *m = w->model;

    for (uint32_t i = 0; m->totals && i < m->event_count; i++) {
        const struct emit_total *t = &m->totals[i];
        json_t *object = json_object();
        bool known = t->all_samples >= t->shown_samples; /* see struct emit_part */
        bool ok = object && json_set(object, "allSamples", known ? json_number(t->all_samples) : json_null()) &&
                  json_set(object, "allValue", known ? json_number(t->all_value) : json_null()) &&
                  json_set(object, "shownSamples", json_number(t->shown_samples)) &&
                  json_set(object, "shownValue", json_number(t->shown_value)) &&
                  json_set(object, "interpreterValue", json_number(t->interpreter_value));
        TRY(html_rows_put(&w->rows, object, ok));
    }
    return NULL;
}

/* Also numbers the processes. */
static struct error *put_threads(struct writer *w)
{
    const struct html_numbers *threads = w->head->threads;

    for (size_t i = 0; i < threads->list.count; i++) {
        const struct emit_thread *t = &w->model->threads[threads->list.data[i]];
        json_t *object = json_object();
        uint32_t process = 0;
        bool ok = object && html_numbers_find(w->head->processes, t->process, &process) &&
                  json_set(object, "process", json_integer(process)) && json_set(object, "tid", json_integer(t->tid)) &&
                  json_set_name(object, "name", t->name);
        TRY(html_rows_put(&w->rows, object, ok));
    }
    return NULL;
}

/* `first`: the first programs of the processes before it, which may be the same one, before it executed another program. */
static struct error *put_process(struct writer *w, const struct emit_process *p, struct map *first)
{
    json_t *object = json_object();
    bool again = map_get(first, p->first_program);

    bool ok = object && json_set(object, "pid", json_integer(p->pid)) && json_set_name(object, "name", p->name) &&
              json_set_name(object, "title", p->title ? p->title : "") && json_set_name(object, "comm", p->comm) &&
              json_set_name(object, "container", p->container) && (!again || json_set(object, "again", json_true())) &&
              map_set(first, p->first_program, 1);
    return html_rows_put(&w->rows, object, ok);
}

/* Those of the threads. */
static struct error *put_processes(struct writer *w)
{
    const struct html_numbers *processes = w->head->processes;
    struct map first = {0};
    struct error *err = NULL;

    for (size_t i = 0; !err && i < processes->list.count; i++)
        err = put_process(w, &w->model->processes[processes->list.data[i]], &first);
    map_deinit(&first);
    return err;
}

static struct error *put_label_sets(struct writer *w)
{
    const struct html_numbers *sets = w->head->label_sets;

    for (size_t i = 0; i < sets->list.count; i++) {
        const struct emit_label_set *set = &w->model->label_sets[sets->list.data[i]];
        json_t *list = json_array();
        bool ok = list;
        for (uint32_t l = 0; ok && l < set->count; l++)
            ok = html_append_name(list, set->labels[l].key) && html_append_name(list, set->labels[l].value);
        TRY(html_rows_put(&w->rows, list, ok));
    }
    return NULL;
}

static struct error *put_captures(struct writer *w)
{
    return html_captures_put(&w->rows, w->model);
}

/* Of threads that have samples here. They are of whole threads: a window of time has none. */
static struct error *put_exact_times(struct writer *w)
{
    const struct emit_model *m = w->model;
    const struct emit_part *part = w->head->options->part;

    for (uint32_t i = 0; i < m->exact_time_count && !(part && part->window_end_ns); i++) {
        const struct emit_exact_time *t = &m->exact_times[i];
        if (!html_numbers_has(w->head->threads, t->thread))
            continue;
        json_t *object = json_object();
        bool ok = object && json_set(object, "thread", json_integer(html_numbers_get(w->head->threads, t->thread))) &&
                  json_set(object, "wait", json_integer(t->wait)) &&
                  json_set(object, "ns", json_number(t->ns)) && json_set(object, "count", json_number(t->count));
        TRY(html_rows_put(&w->rows, object, ok));
    }
    return NULL;
}

static struct error *put_sources(struct writer *w)
{
    return html_texts_put_sources(&w->rows, w->model, w->head->options, w->head->frames);
}

/* ---- the whole ---- */

static struct error *begin(struct writer *w)
{
    const struct emit_options *o = w->head->options;
    json_t *object = json_object(), *sets = json_array();

    bool ok = sets && html_append_name(sets, w->head->title);
    ok = json_set(object, "sets", sets) && ok; /* one; of a comparison the page knows two */
    ok = ok && json_set(object, "format", json_integer(1)) && json_set_name(object, "name", w->head->title) &&
         json_set_name(object, "exporter", o->exporter ? o->exporter : "") &&
         json_set_name(object, "filters", w->model->filters ? w->model->filters : "") &&
         json_set(object, "timeUnitNs", json_integer(HTML_TIME_UNIT_NS)) &&
         json_set(object, "sampleCount", json_number(w->head->sample_count));
    return html_rows_begin(&w->rows, object, ok);
}

static struct error *put_all(struct writer *w)
{
    static const struct {
        const char *key;
        struct error *(*put)(struct writer *w);
    } lists[] = {
        {"events", put_events},     {"totals", put_totals},          {"threads", put_threads},
        {"processes", put_processes}, /* which put_threads() numbered */
        {"labelSets", put_label_sets}, {"captures", put_captures}, {"exactTimes", put_exact_times},
        {"sources", put_sources},
    };

    TRY(begin(w));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        TRY(html_rows_begin_list(&w->rows, lists[i].key));
        TRY(lists[i].put(w));
        TRY(html_rows_end_list(&w->rows));
    }
    TRY(html_texts_put_summary(&w->rows, w->head->options));
    TRY(html_texts_put_comparison(&w->rows, w->head->options));
    return html_rows_put_plain(&w->rows, "}");
}

struct error *html_head_write(const struct html_head *h, FILE *out)
{
    struct writer w = {.head = h, .model = h->model, .rows.packed.limits = h->options->limits};

    struct error *err = put_all(&w);
    if (!err)
        err = html_packed_write(&w.rows.packed, "head", 1, out);
    html_rows_deinit(&w.rows);
    return err;
}
