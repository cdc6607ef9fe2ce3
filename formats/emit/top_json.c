/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top as JSON, for scripts: the figures of the text, unrounded. pysym(1) documents the members; they stay. A weight has
 * its unit in its name: "self_weight_ns", "self_weight_bytes" or "self_weight_count", and the event says which in "unit".
 * Rows are written one by one, since with --top 0 there may be very many.
 */
#include <jansson.h>
#include <stdio.h>

#include "formats/emit/json.h"
#include "formats/emit/names.h"
#include "formats/emit/top.h"

/* Members "WHATsamples" and "WHATweight_UNIT". */
static bool set_count(json_t *object, const struct emit_event *event, const char *what, const struct count *count)
{
    char samples[32], weight[32];

    snprintf(samples, sizeof samples, "%ssamples", what);
    snprintf(weight, sizeof weight, "%sweight_%s", what, json_weight_unit(event));
    return json_set(object, samples, json_number(count->samples)) &&
           json_set(object, weight, json_number(count->weight));
}

static struct error *begin(const struct top_view *v)
{
    json_t *object = json_object();
    uint64_t duration_ns = 0;

    for (uint32_t i = 0; i < v->model->capture_count; i++)
        duration_ns += v->model->captures[i].duration_ns;
    bool ok = object && json_set(object, "format", json_string("top")) && json_set(object, "version", json_integer(1)) &&
              json_set_name(object, "exporter", v->options.exporter ? v->options.exporter : "") &&
              json_set_name(object, "name", v->options.name ? v->options.name : "") &&
              json_set(object, "duration_ns", json_number(duration_ns)) &&
              json_set_name(object, "filters", v->model->filters ? v->model->filters : "") &&
              json_set(object, "sort", json_string(v->options.sort == EMIT_SORT_TOTAL ? "total" : "self")) &&
              json_set(object, "by", json_string(v->options.by == EMIT_BY_LINE ? "line" : "function"));
    TRY(json_write(object, ok, true, v->out));
    fputs(",\"events\":[", v->out);
    return NULL;
}

static bool set_totals(json_t *object, const struct emit_event *event, const struct emit_total *total)
{
    char key[48];

    snprintf(key, sizeof key, "interpreter_weight_%s", json_weight_unit(event));
    bool known = total->all_samples >= total->shown_samples; /* see struct emit_part */
    return (!known || set_count(object, event, "all_", &(struct count){.samples = total->all_samples, .weight = total->all_value})) &&
           json_set(object, key, json_number(total->interpreter_value));
}

/* Member "WHATstates_ns": an object of weights by state, the heaviest first. */
static bool set_states(json_t *object, const struct top_states *states, const char *what, const uint64_t *weights)
{
    uint32_t order[TOP_STATES], count = top_states_order(states, weights, order);
    json_t *list = json_object();
    char key[32];
    bool ok = list;

    for (uint32_t i = 0; ok && i < count; i++) {
        struct buf name = {0};
        name_plain(states->names[order[i]], &name);
        ok = !name.bad && json_set(list, buf_cstr(&name), json_number(weights[order[i]]));
        buf_deinit(&name);
    }
    snprintf(key, sizeof key, "%sstates_ns", what);
    if (ok)
        return json_set(object, key, list);
    json_decref(list);
    return false;
}

static struct error *begin_event(const struct top_view *v, const struct top_event *e, bool first)
{
    const struct emit_event *event = &v->model->events[e->event];
    json_t *object = json_object();

    bool ok = object && json_set_name(object, "event", event->name) && json_set(object, "unit", json_string(json_weight_unit(event))) &&
              set_count(object, event, "", &e->all) &&
              (!e->states.waits || set_states(object, &e->states, "", e->states.weights)) &&
              (!v->model->totals || set_totals(object, event, &v->model->totals[e->event])) &&
              json_set(object, "process_count", json_integer(e->programs.process_count)) &&
              json_set(object, "table_count", json_integer(e->table_count));
    fputs(first ? "\n" : ",\n", v->out);
    TRY(json_write(object, ok, true, v->out));
    fputs(",\"tables\":[", v->out);
    return NULL;
}

static bool set_owner(json_t *object, const struct top_view *v, uint32_t owner)
{
    const struct emit_model *m = v->model;
    bool by_thread = v->options.merge == EMIT_MERGE_THREAD;
    const struct emit_process *process = &m->processes[by_thread ? m->threads[owner].process : owner];

    bool ok = json_set(object, "pid", json_integer(process->pid)) && json_set_name(object, "process", process->name) &&
              json_set_name(object, "title", process->title ? process->title : "");
    if (ok && by_thread)
        ok = json_set(object, "tid", json_integer(m->threads[owner].tid)) && json_set_name(object, "thread", m->threads[owner].name);
    return ok;
}

static bool set_frame(json_t *object, const struct top_view *v, const struct emit_frame *f)
{
    static const char *const layers[] = {
        [EMIT_PYTHON] = "python", [EMIT_NATIVE] = "native", [EMIT_KERNEL] = "kernel", [EMIT_MARK] = "mark"};
    uint32_t line, column;

    name_position(f, &v->options, v->options.by == EMIT_BY_LINE ? NAME_LINE : NAME_FUNCTION, &line, &column);
    bool ok = json_set(object, "layer", json_string(layers[f->kind])) && json_set_name(object, "function", f->function);
    if (ok && *f->file)
        ok = json_set_name(object, "file", f->file);
    if (ok && line)
        ok = json_set(object, "line", json_integer(line));
    if (ok && *f->module)
        ok = json_set_name(object, "module", f->module);
    return ok;
}

static struct error *write_row(const struct top_view *v, const struct top_event *e, const struct top_row *row)
{
    const struct emit_event *event = &v->model->events[e->event];
    const struct top_state_weights *states = e->states.rows ? &e->states.rows[row->name] : NULL;
    const struct intern_entry *name = intern_get(&v->texts, row->name);
    json_t *object = json_object();

    bool ok = object && json_set(object, "name", json_stringn((const char *)name->data, name->len_bytes)) &&
              set_count(object, event, "self_", &row->self) && set_count(object, event, "total_", &row->total);
    if (ok && states)
        ok = set_states(object, &e->states, "self_", states->self) && set_states(object, &e->states, "total_", states->total);
    if (ok && top_has_errors(v, e->event))
        ok = json_set(object, "total_standard_error_ns", json_number(top_errors_of(&v->errors, row->name)));
    if (ok && row->frame == TOP_NO_FRAME)
        ok = json_set(object, "layer", json_string("mark"));
    else if (ok)
        ok = set_frame(object, v, &v->model->frames[row->frame]);
    return json_write(object, ok, false, v->out);
}

static struct error *table(const struct top_view *v, const struct top_event *e, const struct top_table *t, bool first)
{
    const struct emit_event *event = &v->model->events[e->event];
    json_t *object = json_object();

    bool ok = object && (v->options.merge == EMIT_MERGE_ALL || set_owner(object, v, t->owner)) &&
              set_count(object, event, "", &t->all) && json_set(object, "row_count", json_integer(t->row_count));
    fputs(first ? "\n" : ",\n", v->out);
    TRY(json_write(object, ok, true, v->out));
    fputs(",\"rows\":[", v->out);
    for (uint32_t i = 0; i < top_shown(v, t->row_count); i++) {
        fputs(i ? ",\n" : "\n", v->out);
        TRY(write_row(v, e, &t->rows[i]));
    }
    fputs("\n]}", v->out);
    return NULL;
}

static struct error *end_event(const struct top_view *v, const struct top_event *e)
{
    (void)e;
    fputs("\n]}", v->out);
    return NULL;
}

static struct error *end(const struct top_view *v, bool empty)
{
    (void)empty;
    fputs("\n]}\n", v->out);
    return NULL;
}

const struct top_writer top_json_writer = {
    .begin = begin, .begin_event = begin_event, .table = table, .end_event = end_event, .end = end};
