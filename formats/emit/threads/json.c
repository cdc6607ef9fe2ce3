/* SPDX-License-Identifier: Apache-2.0 */
/* threads as JSON, for scripts: each thread by itself, with all its frames. pysym(1) documents the members; they stay. */
#include "formats/emit/threads/json.h"

#include <jansson.h>
#include <string.h>

#include "formats/emit/json.h"
#include "formats/emit/names.h"
#include "formats/emit/threads/facts.h"

static bool set_name_or(json_t *object, const char *key, const char *name)
{
    return json_set_name(object, key, name ? name : "");
}

static json_t *frame_object(const struct threads *t, uint32_t number)
{
    static const char *const layers[] = {
        [EMIT_PYTHON] = "python", [EMIT_NATIVE] = "native", [EMIT_KERNEL] = "kernel", [EMIT_MARK] = "mark"};
    const struct emit_frame *f = &t->model->frames[number];
    const struct intern_entry *name = intern_get(&t->texts, t->ids[number]);
    json_t *object = json_object();

    bool ok = object && json_set(object, "name", json_stringn((const char *)name->data, name->len_bytes)) &&
              json_set(object, "layer", json_string(layers[f->kind])) && json_set_name(object, "function", f->function) &&
              json_set_name(object, "file", f->file) && json_set(object, "line", json_integer(f->line)) &&
              json_set(object, "column", json_integer(f->column)) && json_set_name(object, "module", f->module) &&
              json_set(object, "inlined", json_boolean(f->inlined));
    if (ok)
        return object;
    json_decref(object);
    return NULL;
}

/* The frames of a stack, outermost first; NULL: out of memory. */
static json_t *frames_list(const struct threads *t, uint32_t stack)
{
    const struct emit_model *m = t->model;
    json_t *list = json_array();
    bool ok = list;

    for (uint32_t s = stack; ok && s != EMIT_NO_STACK; s = m->stacks[s].parent)
        ok = !json_array_append_new(list, frame_object(t, m->stacks[s].frame));
    for (size_t i = 0, count = ok ? json_array_size(list) : 0; ok && i < count / 2; i++) {
        json_t *a = json_incref(json_array_get(list, i)), *b = json_incref(json_array_get(list, count - 1 - i));
        ok = !json_array_set_new(list, i, b) && !json_array_set_new(list, count - 1 - i, a);
    }
    if (ok)
        return list;
    json_decref(list);
    return NULL;
}

static struct error *write_thread(const struct threads *t, const struct shown_thread *e)
{
    static const char *const gils[] = {
        [EMIT_GIL_UNKNOWN] = "unknown", [EMIT_GIL_HELD] = "held", [EMIT_GIL_NOT_HELD] = "not held"};
    const struct emit_thread *thread = &t->model->threads[e->thread];
    static const char *const kernel[EMIT_STATES] = {"", "runs", "sleeps", "uninterruptible", "stopped", "traced", "ended"};
    bool known, waits = e->waits != EMIT_WAIT_NONE || e->slept_since || e->newest->stackless;
    uint64_t waited_ns = threads_waited_ns(e, &known);
    json_t *object = json_object();

    bool ok = object && json_set(object, "tid", json_integer(thread->tid)) && json_set_name(object, "thread", thread->name) &&
              set_name_or(object, "interpreter", e->interpreter) &&
              json_set(object, "state", json_string(threads_state_of(e))) &&
              json_set(object, "stack_state", e->newest->stackless ? json_null() : json_string(threads_states[e->waits])) &&
              json_set(object, "kernel_state", json_string(e->state ? kernel[e->state->state] : "")) &&
              set_name_or(object, "system_call", e->system_call) &&
              json_set(object, "waited_ns", waits && (waited_ns || !e->newest->stackless) ? json_number(waited_ns) : json_null()) &&
              json_set(object, "waited_longer", json_boolean(waits && !known)) &&
              json_set(object, "seen_ns_ago", json_number(e->ago_ns)) && json_set(object, "gil", json_string(gils[e->newest->gil])) &&
              json_set(object, "holds_gil", json_boolean(e->holds_gil)) && set_name_or(object, "task", e->task) &&
              json_set(object, "frames", frames_list(t, threads_own_stack(t->model, e->newest->stack)));
    return json_write(object, ok, false, t->out);
}

static struct error *write_task(const struct threads *t, const struct shown_task *e)
{
    const struct emit_model *m = t->model;
    uint32_t outer = e->parent == TASKS_NO_PARENT ? EMIT_NO_STACK : t->list.tasks.data[e->parent].own;
    uint32_t own = e->depth - (outer == EMIT_NO_STACK ? 0 : m->stacks[outer].depth);
    json_t *object = json_object();

    bool ok = object && json_set_name(object, "task", e->name) && json_set_name(object, "awaited_by", e->awaiter) &&
              json_set(object, "state", json_string(threads_states[e->waits])) &&
              json_set(object, "count", json_integer(e->newest->count)) &&
              json_set(object, "tid", json_integer(m->threads[e->newest->thread].tid)) &&
              json_set(object, "waited_ns", json_number(e->newest->until_ns - e->newest->since_ns)) &&
              json_set(object, "own_frames", json_integer(own)) && json_set(object, "frames", frames_list(t, e->own));
    return json_write(object, ok, false, t->out);
}

/* "3.13.0"; "" for none. */
static json_t *version_text(uint32_t v)
{
    char text[32] = "";

    if (v)
        snprintf(text, sizeof text, "%u.%u.%u", v >> 24, v >> 16 & 0xff, v >> 8 & 0xff);
    return json_string(text);
}

static struct error *begin_process(const struct threads *t, const struct threads_process *p)
{
    const struct emit_process *process = &t->model->processes[p->process];
    json_t *object = json_object();

    bool ok = object && json_set(object, "pid", json_integer(process->pid)) && json_set_name(object, "process", process->name) &&
              json_set_name(object, "title", process->title ? process->title : "") && json_set_name(object, "comm", process->comm) &&
              json_set_name(object, "container", process->container) &&
              json_set(object, "python_version", version_text(process->python_version)) &&
              (!process->other_version || json_set(object, "other_python_version", version_text(process->other_version))) &&
              json_set(object, "free_threaded", json_boolean(process->free_threaded)) &&
              json_set(object, "end_realtime_ns", p->end_ns ? json_number(p->end_ns) : json_null()) &&
              json_set(object, "gone_threads", json_integer(p->gone));
    return json_write(object, ok, true, t->out);
}

static struct error *write_process(const struct threads *t, const struct threads_process *p)
{
    TRY(begin_process(t, p));
    fputs(",\"threads\":[", t->out);
    for (uint32_t i = 0; i < p->count; i++) {
        fputs(i ? ",\n" : "\n", t->out);
        TRY(write_thread(t, &t->list.threads.data[p->first + i]));
    }
    fputs("\n],\"tasks\":[", t->out);
    for (uint32_t i = 0; i < p->task_count; i++) {
        fputs(i ? ",\n" : "\n", t->out);
        TRY(write_task(t, &t->list.tasks.data[p->first_task + i]));
    }
    fputs("\n]}", t->out);
    return NULL;
}

struct error *threads_write_json(const struct threads *t)
{
    json_t *object = json_object();

    bool ok = object && json_set(object, "format", json_string("threads")) && json_set(object, "version", json_integer(1)) &&
              set_name_or(object, "exporter", t->options.exporter) && set_name_or(object, "name", t->options.name) &&
              json_set_name(object, "filters", t->model->filters) && json_set(object, "has_waits", json_boolean(t->has_waits)) &&
              json_set(object, "has_tasks", json_boolean(t->has_tasks));
    TRY(json_write(object, ok, true, t->out));
    fputs(",\"processes\":[", t->out);
    for (size_t i = 0; i < t->list.processes.count; i++) {
        fputs(i ? ",\n" : "\n", t->out);
        TRY(write_process(t, &t->list.processes.data[i]));
    }
    fputs("\n]}\n", t->out);
    return NULL;
}
