/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/html/head.h"

#include <inttypes.h>

#include "formats/emit/html/packed.h"
#include "formats/emit/json.h"
#include "formats/emit/names.h"

/* Rows are written one by one, since a trace may have very many processes. */
struct writer {
    const struct html_head *head;
    const struct emit_model *model;
    struct html_packed packed;
    struct buf text;
};

static struct error *flush(struct writer *w)
{
    if (w->text.bad)
        return error_no_memory();
    TRY(html_packed_put(&w->packed, w->text.data, w->text.len_bytes));
    buf_clear(&w->text);
    return NULL;
}

/* Writes `object`, which it releases, as a row of a list; `ok` false: memory ran out while it was made. */
static struct error *put_row(struct writer *w, json_t *object, bool ok, bool first)
{
    if (!ok) {
        json_decref(object);
        return error_no_memory();
    }
    if (!first)
        buf_put_u8(&w->text, ',');
    TRY(json_put(object, &w->text));
    return flush(w);
}

/* Writes an object, which it releases, but for its last brace. */
static struct error *begin_object(struct writer *w, json_t *object, bool ok)
{
    if (!ok) {
        json_decref(object);
        return error_no_memory();
    }
    TRY(json_put(object, &w->text));
    w->text.len_bytes -= !w->text.bad;
    return flush(w);
}

static bool append_name(json_t *list, const char *name)
{
    struct buf text = {0};

    name_plain(name, &text);
    bool ok = !text.bad && !json_array_append_new(list, json_stringn((const char *)text.data, text.len_bytes));
    buf_deinit(&text);
    return ok;
}

static struct error *put_events(struct writer *w)
{
    const struct emit_model *m = w->model;

    for (uint32_t i = 0; i < m->event_count; i++) {
        const struct emit_event *e = &m->events[i];
        uint64_t period = i < w->head->period_count ? w->head->periods[i] : HTML_NO_PERIOD;
        json_t *object = json_object();
        bool ok = object && json_set_name(object, "name", e->name) && json_set_name(object, "unit", e->unit) &&
                  json_set(object, "isTime", json_boolean(e->is_time)) &&
                  json_set(object, "isWaiting", json_boolean(e->is_waiting)) &&
                  json_set(object, "isWall", json_boolean(e->is_wall)) &&
                  json_set(object, "isBlame", json_boolean(e->is_blame)) &&
                  json_set(object, "isBytes", json_boolean(e->is_bytes)) &&
                  json_set(object, "isCounted", json_boolean(e->is_counted)) &&
                  json_set(object, "period", json_number(period == HTML_NO_PERIOD ? 0 : period));
        TRY(put_row(w, object, ok, !i));
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
        TRY(put_row(w, object, ok, !i));
    }
    return NULL;
}

static struct error *put_processes(struct writer *w)
{
    for (size_t i = 0; i < w->head->processes->list.count; i++) {
        const struct emit_process *p = &w->model->processes[w->head->processes->list.data[i]];
        json_t *object = json_object();
        bool ok = object && json_set(object, "pid", json_integer(p->pid)) && json_set_name(object, "name", p->name) &&
                  json_set_name(object, "comm", p->comm) && json_set_name(object, "container", p->container);
        TRY(put_row(w, object, ok, !i));
    }
    return NULL;
}

static struct error *put_threads(struct writer *w)
{
    for (size_t i = 0; i < w->head->threads->list.count; i++) {
        const struct emit_thread *t = &w->model->threads[w->head->threads->list.data[i]];
        json_t *object = json_object();
        uint32_t process = 0;
        bool ok = object && html_numbers_find(w->head->processes, t->process, &process) &&
                  json_set(object, "process", json_integer(process)) && json_set(object, "tid", json_integer(t->tid)) &&
                  json_set_name(object, "name", t->name);
        TRY(put_row(w, object, ok, !i));
    }
    return NULL;
}

static struct error *put_label_sets(struct writer *w)
{
    for (size_t i = 0; i < w->head->label_sets->list.count; i++) {
        const struct emit_label_set *set = &w->model->label_sets[w->head->label_sets->list.data[i]];
        json_t *list = json_array();
        bool ok = list;
        for (uint32_t l = 0; ok && l < set->count; l++)
            ok = append_name(list, set->labels[l].key) && append_name(list, set->labels[l].value);
        TRY(put_row(w, list, ok, !i));
    }
    return NULL;
}

/* ---- captures ---- */

static json_t *settings_of(const struct emit_capture *c)
{
    json_t *list = json_array();
    bool ok = list;

    for (uint32_t i = 0; ok && i < c->setting_count; i++) {
        json_t *pair = json_array();
        ok = pair && append_name(pair, c->settings[i].key) && append_name(pair, c->settings[i].value);
        ok = !json_array_append_new(list, pair) && ok;
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *rates_of(const struct emit_capture *c)
{
    json_t *list = json_array();
    bool ok = list;

    for (uint32_t i = 0; ok && i < c->rate_count; i++) {
        json_t *rate = json_object();
        ok = rate && json_set(rate, "event", json_integer(c->rates[i].event)) &&
             json_set(rate, "frequencyHz", json_number(c->rates[i].frequency_hz)) &&
             json_set(rate, "period", json_number(c->rates[i].period));
        ok = !json_array_append_new(list, rate) && ok;
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *losses_of(const struct emit_capture *c)
{
    json_t *list = json_array();
    bool ok = list;

    for (uint32_t i = 0; ok && i < c->loss_count; i++) {
        json_t *loss = json_object();
        ok = loss && json_set_name(loss, "name", c->losses[i].name) && json_set_name(loss, "meaning", c->losses[i].meaning) &&
             json_set_name(loss, "event", c->losses[i].event) && json_set(loss, "count", json_number(c->losses[i].count)) &&
             json_set(loss, "isSample", json_boolean(c->losses[i].is_sample));
        ok = !json_array_append_new(list, loss) && ok;
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

static struct error *put_captures(struct writer *w)
{
    for (uint32_t i = 0; i < w->model->capture_count; i++) {
        const struct emit_capture *c = &w->model->captures[i];
        json_t *object = json_object();
        char start[24];
        snprintf(start, sizeof start, "%" PRIu64, c->start_realtime_ns);
        bool ok = object && json_set_name(object, "name", c->name) && json_set_name(object, "hostname", c->hostname) &&
                  json_set_name(object, "kernel", c->kernel_release) && json_set_name(object, "machine", c->machine) &&
                  json_set_name(object, "cpuModel", c->cpu_model) && json_set(object, "cpuCount", json_integer(c->cpu_count)) &&
                  json_set(object, "memoryBytes", json_number(c->memory_bytes)) &&
                  json_set_name(object, "recorder", c->recorder) && json_set(object, "startRealtimeNs", json_string(start)) &&
                  json_set(object, "durationNs", json_number(c->duration_ns)) && json_set(object, "settings", settings_of(c)) &&
                  json_set(object, "rates", rates_of(c)) && json_set(object, "losses", losses_of(c));
        TRY(put_row(w, object, ok, !i));
    }
    return NULL;
}

/* Of threads that have samples here. They are of whole threads: a window of time has none. */
static struct error *put_exact_times(struct writer *w)
{
    const struct emit_model *m = w->model;
    const struct emit_part *part = w->head->options->part;
    bool first = true;

    for (uint32_t i = 0; i < m->exact_time_count && !(part && part->window_end_ns); i++) {
        const struct emit_exact_time *t = &m->exact_times[i];
        uint32_t thread;
        if (!html_numbers_has(w->head->threads, t->thread))
            continue;
        if (!html_numbers_find(w->head->threads, t->thread, &thread))
            return error_no_memory();
        json_t *object = json_object();
        bool ok = object && json_set(object, "thread", json_integer(thread)) && json_set(object, "wait", json_integer(t->wait)) &&
                  json_set(object, "ns", json_number(t->ns)) && json_set(object, "count", json_number(t->count));
        TRY(put_row(w, object, ok, first));
        first = false;
    }
    return NULL;
}

/* ---- the whole ---- */

static struct error *put_list(struct writer *w, const char *name, struct error *(*put_rows)(struct writer *w))
{
    buf_printf(&w->text, ",\"%s\":[", name);
    TRY(put_rows(w));
    buf_put_u8(&w->text, ']');
    return flush(w);
}

static struct error *put_all(struct writer *w)
{
    const struct html_head *h = w->head;
    json_t *object = json_object(), *sets = json_array();

    bool ok = sets && append_name(sets, h->options->name ? h->options->name : "");
    ok = json_set(object, "sets", sets) && ok; /* one; a comparison of profiles has two */
    ok = ok && json_set(object, "format", json_integer(1)) && json_set_name(object, "name", h->options->name ? h->options->name : "") &&
         json_set_name(object, "exporter", h->options->exporter ? h->options->exporter : "") &&
         json_set_name(object, "filters", w->model->filters ? w->model->filters : "") &&
         json_set(object, "timeUnitNs", json_integer(HTML_TIME_UNIT_NS)) &&
         json_set(object, "sampleCount", json_number(h->sample_count));
    TRY(begin_object(w, object, ok));
    TRY(put_list(w, "events", put_events));
    TRY(put_list(w, "totals", put_totals));
    TRY(put_list(w, "threads", put_threads)); /* which may number processes */
    TRY(put_list(w, "processes", put_processes));
    TRY(put_list(w, "labelSets", put_label_sets));
    TRY(put_list(w, "captures", put_captures));
    TRY(put_list(w, "exactTimes", put_exact_times));
    buf_put_str(&w->text, "}");
    return flush(w);
}

struct error *html_head_write(const struct html_head *h, FILE *out)
{
    struct writer w = {.head = h, .model = h->model, .packed.limits = h->options->limits};

    struct error *err = put_all(&w);
    if (!err)
        err = html_packed_write(&w.packed, "head", 1, out);
    html_packed_deinit(&w.packed);
    buf_deinit(&w.text);
    return err;
}
