/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays by index. Each process's note is allocated on its own, so that pointers to it stay valid when the array grows.
 */
#include "capture/trace/trace_notes.h"

#include <stdlib.h>

uint64_t trace_note_codes_bytes(const struct process_note *n)
{
    return intern_bytes(&n->codes.keys) + n->codes.index.cap * sizeof *n->codes.index.data;
}

void trace_note_forget_codes(struct process_note *n)
{
    intern_deinit(&n->codes.keys);
    VEC_DEINIT(&n->codes.index);
}

static void free_note(struct process_note *n)
{
    if (!n)
        return;
    trace_note_forget_codes(n);
    VEC_DEINIT(&n->met.bits);
    intern_deinit(&n->python_stacks.keys);
    VEC_DEINIT(&n->python_stacks.stack);
    intern_deinit(&n->native_stacks.keys);
    VEC_DEINIT(&n->native_stacks.stack);
    perf_map_file_deinit(&n->perf_map);
    VEC_DEINIT(&n->threads);
    free(n->cmdline);
    free(n);
}

void trace_notes_deinit(struct trace_notes *n)
{
    for (size_t i = 0; i < n->processes.count; i++)
        free_note(n->processes.data[i]);
    VEC_DEINIT(&n->processes);
    VEC_DEINIT(&n->modules);
}

struct process_note *trace_notes_find(const struct trace_notes *n, const struct process *p)
{
    return p->slot < n->processes.count ? n->processes.data[p->slot] : NULL;
}

struct process_note *trace_notes_process(struct trace_notes *n, struct process *p)
{
    struct process_note *note = trace_notes_find(n, p);

    if (note)
        return note;
    if (!VEC_EXTEND_ZERO(&n->processes, (size_t)p->slot + 1))
        return NULL;
    note = calloc(1, sizeof *note);
    if (!note)
        return NULL;
    note->process = p;
    perf_map_file_init(&note->perf_map);
    n->processes.data[p->slot] = note;
    return note;
}

void trace_notes_forget(struct trace_notes *n, const struct process *p)
{
    struct process_note *note = trace_notes_find(n, p);

    if (!note)
        return;
    free_note(note);
    n->processes.data[p->slot] = NULL;
}

struct record_id *trace_notes_thread(struct process_note *n, const struct thread *t)
{
    return VEC_EXTEND_ZERO(&n->threads, (size_t)t->index + 1) ? &n->threads.data[t->index] : NULL;
}

struct module_note *trace_notes_module(struct trace_notes *n, const struct module *m)
{
    return VEC_EXTEND_ZERO(&n->modules, (size_t)m->index + 1) ? &n->modules.data[m->index] : NULL;
}

uint64_t trace_notes_codes_bytes(const struct trace_notes *n)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < n->processes.count; i++) {
        if (n->processes.data[i])
            bytes += trace_note_codes_bytes(n->processes.data[i]);
    }
    return bytes;
}

void trace_notes_forget_codes(struct trace_notes *n)
{
    for (size_t i = 0; i < n->processes.count; i++) {
        if (n->processes.data[i])
            trace_note_forget_codes(n->processes.data[i]);
    }
}

void known_stacks_clear(struct known_stacks *s)
{
    intern_clear(&s->keys);
    s->stack.count = 0;
}

uint64_t known_stacks_bytes(const struct known_stacks *s)
{
    return intern_bytes(&s->keys) + s->stack.cap * sizeof *s->stack.data;
}
