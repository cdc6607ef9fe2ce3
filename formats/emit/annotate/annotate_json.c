/* SPDX-License-Identifier: Apache-2.0 */
/* annotate as JSON, for scripts: all lines that ran, whatever is hot. pysym(1) documents the members; they stay. */
#include <jansson.h>

#include "formats/emit/annotate/annotate.h"
#include "formats/emit/json.h"
#include "formats/emit/source_lines.h"

/* Members "self_weight_UNIT" and so on. */
static bool set_weights(json_t *object, const struct emit_event *event, const struct annotate_weights *w)
{
    const struct {
        const char *name;
        uint64_t weight;
    } columns[] = {{"self", w->self}, {"native", w->native}, {"kernel", w->kernel}, {"total", w->total}};
    char key[48];
    bool ok = true;

    for (size_t i = 0; ok && i < sizeof columns / sizeof *columns; i++) {
        snprintf(key, sizeof key, "%s_weight_%s", columns[i].name, json_weight_unit(event));
        ok = json_set(object, key, json_number(columns[i].weight));
    }
    return ok;
}

static struct error *begin(const struct annotate_view *v)
{
    json_t *object = json_object();

    bool ok = object && json_set(object, "format", json_string("annotate")) && json_set(object, "version", json_integer(1)) &&
              json_set_name(object, "exporter", v->options.exporter ? v->options.exporter : "") &&
              json_set_name(object, "name", v->options.name ? v->options.name : "") &&
              json_set_name(object, "filters", v->model->filters ? v->model->filters : "") &&
              json_set_name(object, "annotate", v->options.annotate ? v->options.annotate : "");
    TRY(json_write(object, ok, true, v->out));
    fputs(",\"events\":[", v->out);
    return NULL;
}

static struct error *begin_event(const struct annotate_view *v, const struct annotate_event *e, bool first)
{
    const struct emit_event *event = &v->model->events[e->event];
    json_t *object = json_object();
    char key[32];

    snprintf(key, sizeof key, "weight_%s", json_weight_unit(event));
    bool ok = object && json_set_name(object, "event", event->name) && json_set(object, "unit", json_string(json_weight_unit(event))) &&
              json_set(object, "samples", json_number(e->all.samples)) && json_set(object, key, json_number(e->all.weight)) &&
              json_set(object, "section_count", json_integer(e->section_count));
    fputs(first ? "\n" : ",\n", v->out);
    TRY(json_write(object, ok, true, v->out));
    fputs(",\"sections\":[", v->out);
    return NULL;
}

static struct error *write_head(const struct annotate_view *v, const struct emit_event *event, const struct annotate_section *s,
                                const struct emit_source *source)
{
    static const char *const matches[] = {
        [EMIT_SOURCE_UNKNOWN] = "unknown", [EMIT_SOURCE_SAME] = "same", [EMIT_SOURCE_CHANGED] = "changed"};
    const struct intern_entry *function = s->function == INTERN_NONE ? NULL : intern_get(&v->texts, s->function);
    json_t *object = json_object(), *found = source ? json_object() : NULL;

    bool ok = object && json_set_name(object, "file", s->file) &&
              (!function || json_set(object, "function", json_stringn((const char *)function->data, function->len_bytes))) &&
              json_set(object, "layer", json_string(s->is_python ? "python" : "native")) && set_weights(object, event, &s->weights);
    if (ok && source) {
        ok = found && json_set_name(found, "path", source->path) && json_set(found, "match", json_string(matches[source->match])) &&
             json_set_name(found, "reason", source->reason);
        ok = ok && json_set(object, "source", json_incref(found));
    }
    json_decref(found);
    return json_write(object, ok, true, v->out);
}

/* A member "text", the line of source, as the last one of the object. */
static struct error *write_text(const struct annotate_view *v, const char *line, size_t len)
{
    struct buf text = {0}, json = {0};

    buf_put(&text, line, len);
    json_put_foreign(buf_cstr(&text), &json);
    struct error *err = text.bad || json.bad ? error_no_memory() : NULL;
    if (!err)
        fprintf(v->out, ",\"text\":%s", buf_cstr(&json));
    buf_deinit(&text);
    buf_deinit(&json);
    return err;
}

static struct error *write_line(const struct annotate_view *v, const struct emit_event *event, const struct annotate_line *l,
                                const struct source_lines *text)
{
    json_t *object = json_object();
    size_t len;
    const char *line = source_lines_get(text, l->line, &len);

    bool ok = object && json_set(object, "line", l->line ? json_integer(l->line) : json_null()) &&
              json_set_name(object, "function", v->model->frames[l->frame].function) && set_weights(object, event, &l->weights);
    TRY(json_write(object, ok, true, v->out));
    if (line)
        TRY(write_text(v, line, len));
    fputs("}", v->out);
    return NULL;
}

static struct error *section(const struct annotate_view *v, const struct annotate_event *e, const struct annotate_section *s, bool first)
{
    const struct emit_event *event = &v->model->events[e->event];
    const struct emit_source *source;
    struct source_lines text = {0};
    bool first_line = true;

    TRY(annotate_source(v, s, &source));
    fputs(first ? "\n" : ",\n", v->out);
    struct error *err = write_head(v, event, s, source);
    if (!err && source && !source_lines_init(&text, source->text, source->len_bytes))
        err = error_no_memory();
    if (!err)
        fputs(",\"lines\":[", v->out);
    for (size_t i = s->line_begin; !err && i < s->line_end; i++) {
        const struct annotate_line *l = &v->lines.data[i];
        if (!l->weights.total)
            continue;
        fputs(first_line ? "\n" : ",\n", v->out);
        first_line = false;
        err = write_line(v, event, l, &text);
    }
    if (!err)
        fputs("\n]}", v->out);
    source_lines_deinit(&text);
    return err;
}

static struct error *end_event(const struct annotate_view *v, const struct annotate_event *e)
{
    (void)e;
    fputs("\n]}", v->out);
    return NULL;
}

static struct error *end(const struct annotate_view *v, bool empty)
{
    (void)empty;
    fputs("\n]}\n", v->out);
    return NULL;
}

const struct annotate_writer annotate_json_writer = {
    .begin = begin, .begin_event = begin_event, .section = section, .end_event = end_event, .end = end};
