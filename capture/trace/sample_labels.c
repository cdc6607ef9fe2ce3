/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/trace/sample_labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/host/system_calls.h"

static_assert((int)WIRE_WAIT_BLOCKED == TRACE_WAIT_BLOCKED && (int)WIRE_WAIT_UNINTERRUPTIBLE == TRACE_WAIT_UNINTERRUPTIBLE &&
                  (int)WIRE_WAIT_LOCK == TRACE_WAIT_LOCK && (int)WIRE_WAIT_RUN_QUEUE == TRACE_WAIT_RUN_QUEUE &&
                  (int)WIRE_WAIT_PREEMPTED == TRACE_WAIT_PREEMPTED && (int)WIRE_WAIT_STOPPED == TRACE_WAIT_STOPPED &&
                  (int)WIRE_WAIT_GIL == TRACE_WAIT_GIL && (int)WIRE_WAIT_STOP_THE_WORLD == TRACE_WAIT_STOP_THE_WORLD &&
                  (int)WIRE_WAIT_ASLEEP == TRACE_WAIT_ASLEEP && (int)WIRE_WAIT_TASK == TRACE_WAIT_TASK &&
                  (int)WIRE_WAIT_FUTURE == TRACE_WAIT_FUTURE && (int)WIRE_WAIT_EVENT_LOOP == TRACE_WAIT_EVENT_LOOP,
              "the sampler and the trace have one numbering");

/* `pairs` has room for each label once. */
struct labels {
    struct trace_writer *writer;
    uint64_t pairs[2 * TRACE_LABEL_COUNT];
    uint32_t count;
};

static void add(struct labels *l, enum trace_label label, uint32_t value)
{
    uint64_t *pair = &l->pairs[2 * l->count++];

    pair[0] = trace_writer_cstr(l->writer, trace_label_key(label));
    pair[1] = value;
}

/* The names of a task that waits, and of the one that awaits it, as WIRE_TASK has them. */
static void add_task(struct labels *l, const uint8_t *text, uint32_t len_bytes)
{
    const uint8_t *nul = memchr(text, 0, len_bytes);
    uint32_t name = nul ? (uint32_t)(nul - text) : len_bytes;

    if (name)
        add(l, TRACE_LABEL_task, trace_writer_string(l->writer, text, name));
    if (nul && name + 1 < len_bytes)
        add(l, TRACE_LABEL_awaiter, trace_writer_string(l->writer, nul + 1, len_bytes - name - 1));
}

static void add_python(struct trace_builder *b, struct labels *l, struct process *p, const struct wire_sample *m,
                       const uint8_t *task)
{
    char number[24];

    if (m->interpreter_id && m->interpreter_id != WIRE_INTERPRETER_ID_NONE && m->thread_handle) {
        snprintf(number, sizeof number, "%" PRIu64, m->interpreter_id);
        add(l, TRACE_LABEL_interpreter, trace_writer_cstr(l->writer, number));
    }
    if (m->flags & WIRE_TASK)
        add_task(l, task, m->task_len_bytes);
    else if (p && p->python && m->task_len_bytes && python_names_task(&b->names, p, m, task))
        add(l, TRACE_LABEL_task, trace_writer_string(l->writer, b->names.text.data, b->names.text.len_bytes));
}

static void add_wait(struct labels *l, const struct wire_sample *m)
{
    char number[16];

    add(l, TRACE_LABEL_wait, trace_writer_cstr(l->writer, trace_value_meaning(TRACE_ENUM_wait_kind, m->wait_kind)));
    if (m->system_call == WIRE_NO_SYSTEM_CALL)
        return;
    const char *name = system_call_name(m->system_call);
    snprintf(number, sizeof number, "#%d", m->system_call);
    add(l, TRACE_LABEL_system_call, trace_writer_cstr(l->writer, name ? name : number));
}

/* A thread by its ids and the name that the kernel has for it. */
static uint32_t thread_text(struct trace_builder *b, uint32_t tgid, uint32_t tid)
{
    struct process *p = processes_find(b->o.processes, tgid);
    const struct thread *t = p ? process_thread(p, tid) : NULL;
    char text[48];

    snprintf(text, sizeof text, "%u/%u%s%s", tgid, tid, t ? " " : "", t ? t->name : "");
    return trace_writer_cstr(b->o.writer, text);
}

uint32_t sample_waker(struct trace_builder *b, const struct wire_sample *m)
{
    switch (m->waker_kind) {
    case WIRE_WAKER_THREAD:
        return thread_text(b, m->waker_tgid, m->waker_tid);
    case WIRE_WAKER_INTERRUPT:
        return trace_writer_cstr(b->o.writer, "interrupt");
    case WIRE_WAKER_OTHER:
        return trace_writer_cstr(b->o.writer, "other");
    default:
        return 0;
    }
}

uint32_t sample_labels(struct trace_builder *b, struct process *p, const struct wire_sample *m, const uint8_t *task,
                       uint32_t waker)
{
    struct labels l = {.writer = b->o.writer};

    add_python(b, &l, p, m, task);
    if (m->wait_kind)
        add_wait(&l, m);
    if (waker)
        add(&l, TRACE_LABEL_waker, waker);
    struct trace_label_set set = {.pairs = {l.pairs, l.count}};
    return l.count ? trace_writer_intern(b->o.writer, TRACE_label_set, &set) : 0;
}
