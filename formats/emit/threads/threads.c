/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every thread was doing at the end: a list of threads with their newest stacks, for people or as JSON. While samples come, only the
 * newest one of each thread is kept, so memory grows with the threads and not with the recording.
 *
 * A thread that waits has a sample for each second of its wait, and one at the end: these say that the wait goes on. A wait
 * that has ended has said so; its thread has run since.
 */
#include "formats/emit/threads/threads_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/emit/threads/json.h"
#include "formats/emit/threads/list.h"
#include "formats/emit/threads/text.h"

static struct error *threads_begin(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state)
{
    if (options->merge == EMIT_MERGE_ALL)
        return error_create(ERROR_USAGE, "threads shows each process: --merge takes process or thread with it");
    struct threads *t = calloc(1, sizeof *t);
    if (!t)
        return error_no_memory();
    t->model = model;
    t->options = *options;
    t->out = out;
    t->tasks.keys.arena.limits = t->texts.arena.limits = options->limits;
    *state = t;
    return NULL;
}

static enum emit_wait wait_of(const struct threads *t, const struct thread_newest *n)
{
    return t->model->label_sets[n->label_set].wait;
}

/* A sample becomes the newest one of its thread. */
static void take(const struct threads *t, struct thread_newest *n, const struct emit_sample *s)
{
    struct thread_newest now = {.time_ns = s->time_ns, .since_ns = s->time_ns, .stack = s->stack, .label_set = s->label_set,
                                .capture = s->capture, .cpu = s->cpu, .gil = s->gil, .seen = true, .lasts = s->lasts,
                                .since_known = n->seen && !s->continues};

    if (wait_of(t, &now) != EMIT_WAIT_NONE)
        now.since_ns -= s->value < s->time_ns ? s->value : s->time_ns;
    if (s->continues && n->seen && wait_of(t, n) == wait_of(t, &now)) {
        now.since_ns = n->since_ns;
        now.since_known = n->since_known;
    }
    *n = now;
}

static struct error *threads_sample(void *state, const struct emit_sample *s)
{
    struct threads *t = state;
    const struct emit_event *event = &t->model->events[s->event];

    t->tells_lasting |= s->lasts;
    if (event->kind == EVENT_TASK_WAIT) {
        t->has_tasks = true;
        return waiting_tasks_add(&t->tasks, t->options.limits, s) ? NULL : error_no_memory();
    }
    t->has_waits |= event->kind == EVENT_OFF_CPU || event->kind == EVENT_WALL_TIME;
    if (event->kind == EVENT_BLAME || s->owed) /* stacks of other moments */
        return NULL;
    if (!VEC_EXTEND_COUNTED(t->options.limits, &t->newest, (size_t)s->thread + 1))
        return error_no_memory();
    struct thread_newest *n = &t->newest.data[s->thread];
    if (!n->seen || s->time_ns >= n->time_ns || s->capture != n->capture)
        take(t, n, s);
    return NULL;
}

static struct error *threads_end(void *state)
{
    struct threads *t = state;

    TRY(threads_list_make(t));
    TRY(names_init(&t->names, t->model, &t->options));
    TRY(names_spell(&t->names, NAME_AS_ASKED, &t->texts, &t->ids));
    TRY(t->options.json ? threads_write_json(t) : threads_write_text(t));
    return ferror(t->out) ? error_os(errno, "cannot write the threads") : NULL;
}

static void threads_destroy(void *state)
{
    struct threads *t = state;

    if (!t)
        return;
    limits_give(t->options.limits, t->newest.count * sizeof *t->newest.data);
    VEC_DEINIT(&t->newest);
    waiting_tasks_deinit(&t->tasks);
    threads_list_deinit(&t->list);
    names_deinit(&t->names);
    intern_deinit(&t->texts);
    free(t->ids);
    free(t->state_of);
    free(t);
}

const struct emitter emitter_threads = {
    .name = "threads",
    .description = "what each thread did last: its stack, what it waits for and since when",
    .extension = ".threads.txt",
    .time_order = true,
    .writes_json = true,
    .shows_labels = true,
    .begin = threads_begin,
    .sample = threads_sample,
    .end = threads_end,
    .destroy = threads_destroy,
};
