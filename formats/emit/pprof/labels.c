/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/emit/pprof/labels.h"

#include "formats/emit/pprof/fields.h"
#include "formats/emit/protobuf.h"

/* What is being written, and whether memory ran out. */
struct writing {
    struct pprof_tables *tables;
    struct buf *out;
    bool failed;
};

/* Keys of labels from a trace, such as "asyncio task", as stores want them. */
static uint32_t key_of(struct pprof_tables *t, const char *name)
{
    struct buf key = {0};

    pprof_put_word(name, &key);
    uint32_t id = pprof_string(t, &key);
    buf_deinit(&key);
    return id;
}

static void put(struct writing *w, const char *key, uint32_t field, uint64_t value)
{
    struct buf label = {0};
    uint32_t name = key_of(w->tables, key);

    protobuf_put_u64(&label, PPROF_LABEL_KEY, name);
    protobuf_put_u64(&label, field, value);
    if (field == PPROF_LABEL_NUMBER && !value) { /* with a unit pprof takes it for the number 0, else for no label */
        uint32_t unit = key_of(w->tables, "count");
        protobuf_put_u64(&label, PPROF_LABEL_UNIT, unit);
        w->failed |= unit == PPROF_NONE;
    }
    protobuf_put_message(w->out, PPROF_SAMPLE_LABEL, &label);
    w->failed |= name == PPROF_NONE || w->out->bad;
    buf_deinit(&label);
}

/* Nothing for an empty text, which would read as a number. */
static void put_text(struct writing *w, const char *key, const char *text)
{
    uint32_t value = pprof_plain_string(w->tables, text);

    w->failed |= value == PPROF_NONE;
    if (value && !w->failed)
        put(w, key, PPROF_LABEL_TEXT, value);
}

static void put_process(struct writing *w, const struct emit_process *process)
{
    put_text(w, "process", process->name);
    if (process->title)
        put_text(w, "title", process->title);
    put(w, "pid", PPROF_LABEL_NUMBER, process->pid);
    put_text(w, "container", process->container);
}

bool pprof_put_labels(const struct pprof_samples *samples, struct pprof_tables *tables, const struct pprof_owner *owner,
                      struct buf *out)
{
    const struct emit_model *m = samples->model;
    struct writing w = {.tables = tables, .out = out};

    if (samples->merge == EMIT_MERGE_PROCESS)
        put_process(&w, &m->processes[owner->thread]);
    if (samples->merge == EMIT_MERGE_THREAD) {
        const struct emit_thread *thread = &m->threads[owner->thread];
        put_process(&w, &m->processes[thread->process]);
        put_text(&w, "thread", thread->name);
        put(&w, "tid", PPROF_LABEL_NUMBER, thread->tid);
    }
    for (uint32_t i = 0; owner->label_set != PPROF_ANY && i < m->label_sets[owner->label_set].count; i++) {
        const struct emit_label *label = &m->label_sets[owner->label_set].labels[i];
        put_text(&w, label->key, label->value);
    }
    if (owner->gil == EMIT_GIL_HELD || owner->gil == EMIT_GIL_NOT_HELD)
        put_text(&w, "gil", owner->gil == EMIT_GIL_HELD ? "held" : "not held");
    if (owner->cpu != PPROF_ANY)
        put(&w, "cpu", PPROF_LABEL_NUMBER, owner->cpu);
    return !w.failed && !out->bad;
}
