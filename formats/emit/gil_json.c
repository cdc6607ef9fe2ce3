/* SPDX-License-Identifier: Apache-2.0 */
/* gil as JSON, for scripts: the figures of the text, unrounded. pysym(1) documents the members; they stay. */
#include <jansson.h>

#include "formats/emit/gil.h"
#include "formats/emit/json.h"
#include "formats/emit/names.h"

static struct error *begin(const struct gil_view *v)
{
    json_t *object = json_object();

    bool ok = object && json_set(object, "format", json_string("gil")) && json_set(object, "version", json_integer(1)) &&
              json_set_name(object, "exporter", v->options.exporter ? v->options.exporter : "") &&
              json_set_name(object, "name", v->options.name ? v->options.name : "") &&
              json_set(object, "duration_ns", json_number(gil_duration_ns(v))) &&
              json_set_name(object, "filters", v->model->filters) &&
              json_set(object, "has_waits", json_boolean(v->has_waits)) &&
              json_set(object, "has_blame", json_boolean(v->has_blame)) &&
              json_set(object, "process_count", json_integer(v->group_count));
    TRY(json_write(object, ok, true, v->out));
    fputs(",\"processes\":[", v->out);
    return NULL;
}

/* The figures that processes and threads have alike. */
static bool set_sums(json_t *object, const struct gil_sum *sums)
{
    static const char *const names[GIL_WHATS] = {[GIL_RAN] = "running_ns",
                                                 [GIL_OFF] = "off_cpu_ns",
                                                 [GIL_WAITED] = "waited_ns",
                                                 [GIL_BLAMED] = "blamed_ns",
                                                 [GIL_LOCKED] = "lock_waits_ns"};
    bool ok = true;

    for (enum gil_what what = 0; ok && what < GIL_WHATS; what++)
        ok = json_set(object, names[what], json_number(sums[what].ns));
    return ok && json_set(object, "running_error_ns", json_number(gil_error_ns(&sums[GIL_RAN]))) &&
           json_set(object, "blamed_error_ns", json_number(gil_error_ns(&sums[GIL_BLAMED])));
}

/* null where nothing is known exactly. */
static bool set_exact(json_t *object, bool known, uint64_t ns, uint64_t count)
{
    return json_set(object, "waited_exact_ns", known ? json_number(ns) : json_null()) &&
           json_set(object, "waited_exact_count", known ? json_number(count) : json_null());
}

static struct error *write_thread(const struct gil_view *v, const struct gil_thread *t)
{
    const struct emit_thread *thread = &v->model->threads[t->thread];
    json_t *object = json_object();

    bool ok = object && json_set(object, "pid", json_integer(v->model->processes[thread->process].pid)) &&
              json_set(object, "tid", json_integer(thread->tid)) && json_set_name(object, "thread", thread->name) &&
              json_set_name(object, "interpreter", t->interpreter ? t->interpreter : "") && set_sums(object, t->sums) &&
              set_exact(object, t->exact, t->exact_ns, t->exact_count);
    return json_write(object, ok, false, v->out);
}

static struct error *begin_group(const struct gil_view *v, const struct gil_group *g, bool first)
{
    const struct emit_process *process = g->process == EMIT_PART_ALL ? NULL : &v->model->processes[g->process];
    json_t *object = json_object();

    bool ok = object && (!process || (json_set(object, "pid", json_integer(process->pid)) && json_set_name(object, "process", process->name) &&
                                      json_set_name(object, "title", process->title ? process->title : "")));
    ok = ok && json_set(object, "has_gil", json_boolean(g->has_gil)) &&
         json_set(object, "free_threaded", json_boolean(g->free_threaded)) &&
         json_set(object, "known_samples", json_number(g->known_samples)) &&
         json_set(object, "held_samples", json_number(g->held_samples)) && set_sums(object, g->sums) &&
         set_exact(object, g->exact, g->exact_ns, g->exact_count) &&
         json_set(object, "holder_count", json_integer(g->holders)) &&
         json_set(object, "waiter_count", json_integer(g->exact ? g->exact_waiters : g->waiters)) &&
         json_set(object, "thread_count", json_number(g->threads.count));
    fputs(first ? "\n" : ",\n", v->out);
    TRY(json_write(object, ok, true, v->out));
    fputs(",\"threads\":[", v->out);
    for (uint32_t i = 0; i < gil_shown(v, g->threads.count); i++) {
        fputs(i ? ",\n" : "\n", v->out);
        TRY(write_thread(v, &g->threads.data[i]));
    }
    fputs("\n]", v->out);
    return NULL;
}

static bool append_name(json_t *list, const struct gil_view *v, uint32_t text)
{
    const struct intern_entry *name = intern_get(&v->texts, text);

    return !json_array_append_new(list, json_stringn((const char *)name->data, name->len_bytes));
}

/* A list of names of frames, which is NULL when memory ran out. */
static json_t *names_of(const struct gil_view *v, const uint32_t *frames, size_t count)
{
    json_t *list = json_array();
    bool ok = list;

    for (size_t i = 0; ok && i < count; i++)
        ok = append_name(list, v, v->ids[frames[i]]);
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

static struct error *write_row(const struct gil_view *v, const struct gil_row *row, const struct gil_frames *f)
{
    static const char *const states[EMIT_WAITS] = {"running", "blocked", "uninterruptible", "lock", "run queue",
                                                   "preempted", "stopped", "GIL", "stop the world", "asleep", "task",
                                                   "future", "event loop", "other"};
    const struct gil_state *state = &v->states.data[row->state];
    const struct intern_entry *name = intern_get(&v->texts, row->function);
    json_t *object = json_object();

    bool ok = object && json_set(object, "function", json_stringn((const char *)name->data, name->len_bytes)) &&
              json_set(object, "state", json_string(states[state->wait])) &&
              json_set_name(object, "system_call", state->system_call ? state->system_call : "") &&
              json_set(object, "samples", json_number(row->sum.samples)) && json_set(object, "time_ns", json_number(row->sum.ns)) &&
              json_set(object, "error_ns", json_number(gil_error_ns(&row->sum))) &&
              json_set(object, "blamed_ns", json_number(row->blamed_ns)) &&
              json_set(object, "native", names_of(v, f->native.data, f->native.count)) &&
              json_set(object, "callers", names_of(v, f->callers.data, f->callers.count));
    return json_write(object, ok, false, v->out);
}

static struct error *table(const struct gil_view *v, const struct gil_group *g, enum gil_table table)
{
    static const char *const names[GIL_TABLES] = {"holders", "blocking_calls", "waiters"};
    struct gil_frames frames = {0};
    struct error *err = NULL;

    fprintf(v->out, ",\n\"%s\":[", names[table]);
    for (uint32_t i = 0; !err && i < gil_shown(v, g->rows.count); i++) {
        fputs(i ? ",\n" : "\n", v->out);
        err = gil_frames_of(v, &g->rows.data[i], &frames) ? write_row(v, &g->rows.data[i], &frames) : error_no_memory();
    }
    fputs("\n]", v->out);
    gil_frames_deinit(&frames);
    return err;
}

static struct error *end_group(const struct gil_view *v, const struct gil_group *g)
{
    (void)g;
    fputs("}", v->out);
    return NULL;
}

static struct error *end(const struct gil_view *v)
{
    fputs("\n]}\n", v->out);
    return NULL;
}

const struct gil_writer gil_json_writer = {
    .begin = begin, .begin_group = begin_group, .table = table, .end_group = end_group, .end = end};
