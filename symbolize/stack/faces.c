/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/faces.h"

#include <string.h>

#include "formats/base/path.h"
#include "formats/trace/container.h"
#include "symbolize/stack/thread_library.h"
#include "symbolize/trace/process_names.h"
#include "symbolize/trace/thread_names.h"

enum {
    OUTERMOST = 8,  /* frames that are looked at: the thread's start has at most three */
    TRIES_MAX = 256, /* samples of a thread; in all of them it may have been in threading, or in an interpreter that begins */
};

void faces_init(struct faces *f, struct model *model, struct frames *frames)
{
    *f = (struct faces){.model = model, .frames = frames};
}

void faces_deinit(struct faces *f)
{
    VEC_DEINIT(&f->threads);
    buf_deinit(&f->text);
}

/* A text of the model; *out is left alone if there is no memory. */
static struct error *put_text(struct faces *f, const char *text, size_t len, uint32_t *out)
{
    uint32_t number = model_text(f->model, text, len);

    if (number == MODEL_NONE)
        return error_no_memory();
    *out = number;
    return NULL;
}

static struct error *put_buf(struct faces *f, uint32_t *out)
{
    return f->text.bad ? error_no_memory() : put_text(f, (const char *)f->text.data, f->text.len_bytes, out);
}

/* ---- processes ---- */

static struct error *process_name(struct faces *f, const struct epoch *e, uint32_t process, uint32_t *out)
{
    buf_clear(&f->text);
    process_name_put(e, process, &f->text);
    return put_buf(f, out);
}

struct error *faces_process(struct faces *f, const struct epoch *e, uint32_t process,
                            const struct process_identity *identity, uint32_t *number)
{
    const struct epoch_process *p = &e->processes.data[process];
    struct model_process names = {.parent_pid = p->def.parent_tgid,
                                  .python_version = p->def.python_version,
                                  .free_threaded = p->def.python_flags & TRACE_CODE_FREE_THREADED,
                                  .ended = p->ended};
    char container[CONTAINER_NAME_MAX];
    const char *title = process_name_title(e, process);

    TRY(frames_string(f->frames, e, p->comm, &names.comm));
    TRY(frames_string(f->frames, e, p->def.cgroup, &names.cgroup));
    TRY(process_name(f, e, process, &names.name));
    if (*title)
        TRY(put_text(f, title, strlen(title), &names.title));
    if (container_of_cgroup(epoch_text(e, p->def.cgroup), container))
        TRY(put_text(f, container, strlen(container), &names.container));
    *number = model_process(f->model, identity, &names);
    return *number == MODEL_NONE ? error_no_memory() : NULL;
}

/* ---- threads ---- */

struct error *faces_thread(struct faces *f, const struct epoch *e, uint32_t thread, uint32_t process, uint32_t *number,
                           uint32_t *tries)
{
    const struct epoch_thread *t = &e->threads.data[thread];
    const char *text = thread_name_of(e, thread);
    bool nameless = thread_is_nameless(e, thread);
    uint32_t name = 0;

    TRY(put_text(f, text, strlen(text), &name));
    *number = model_thread(f->model, process, t->def.tid, name);
    if (*number == MODEL_NONE || !VEC_EXTEND_ZERO(&f->threads, (size_t)*number + 1))
        return error_no_memory();
    if (nameless && f->threads.data[*number])
        model_name_thread(f->model, *number, f->threads.data[*number]);
    *tries = nameless && !f->threads.data[*number] ? TRIES_MAX : 0;
    return NULL;
}

/* ---- what stacks tell ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && !strcmp(text + len - end_len, end);
}

/* What runs before any program: where it is the outermost function, an interpreter begins. Imports, and the search for codecs. */
static bool is_beginning(const char *file)
{
    static const char frozen[] = "<frozen ", runpy[] = "<frozen runpy>";

    return (!strncmp(file, frozen, sizeof frozen - 1) && strcmp(file, runpy) != 0) || ends_with(file, "/encodings/__init__.py");
}

static void find_function(const struct emit_frame *const *frames, uint32_t count, struct buf *out)
{
    uint32_t i = 0;

    while (i < count && !strcmp(path_base(frames[i]->file), "threading.py"))
        i++;
    if (i == count || !*frames[i]->function || is_beginning(frames[i]->file))
        return;
    const char *function = frames[i]->function, *file = frames[i]->file;
    if (!strcmp(function, "_worker") && ends_with(file, "concurrent/futures/thread.py")) {
        buf_put_str(out, "ThreadPoolExecutor (_worker)");
        return;
    }
    buf_put_str(out, function);
    if (*file)
        buf_printf(out, " (%s)", path_base(file));
}

/* The outermost frames of a Python stack, outermost first. */
static struct error *outermost(struct faces *f, const struct epoch *e, uint32_t stack, uint32_t interpreter,
                               const struct emit_frame *frames[OUTERMOST], uint32_t *count)
{
    uint32_t ids[OUTERMOST], numbers[OUTERMOST];

    if (!epoch_outermost(e, stack, OUTERMOST, ids, count, f->model->limits))
        return error_no_memory();
    for (uint32_t i = 0; i < *count; i++) {
        if (e->frames.data[ids[i]].type != TRACE_python_frame) {
            *count = i;
            break;
        }
        TRY(frames_number(f->frames, e, ids[i], interpreter, &numbers[i]));
    }
    for (uint32_t i = 0; i < *count; i++)
        frames[i] = &f->model->frames.data[numbers[i]];
    return NULL;
}

/*
 * Finds the name of a thread in a sample of it. What it runs changes, so the library that it is of comes first: until a whole
 * native stack has shown that there is none, a function's name is preliminary. *sure: there is nothing better to come.
 */
static struct error *find_thread_name(struct faces *f, const struct epoch *e, const struct trace_tuple *t, uint32_t process,
                                      uint32_t interpreter, bool *sure)
{
    const struct emit_frame *frames[OUTERMOST];
    enum thread_origin origin = THREAD_ORIGIN_UNKNOWN;
    uint32_t ids[OUTERMOST], count = 0;

    *sure = !t->native_end && !t->native_stack;
    if (t->native_stack && t->native_end == LOSS_complete) {
        if (!epoch_outermost(e, t->native_stack, OUTERMOST, ids, &count, f->model->limits))
            return error_no_memory();
        origin = thread_origin_of(e, process, ids, count, &f->text);
        *sure |= origin != THREAD_ORIGIN_UNKNOWN;
    }
    if (origin == THREAD_ORIGIN_LIBRARY || !t->python_stack || t->python_end != LOSS_complete)
        return NULL;
    TRY(outermost(f, e, t->python_stack, interpreter, frames, &count));
    find_function(frames, count, &f->text);
    return NULL;
}

struct error *faces_look(struct faces *f, const struct epoch *e, uint32_t tuple, uint32_t thread, uint32_t of_thread,
                         uint32_t interpreter, uint32_t *tries)
{
    bool sure;

    buf_clear(&f->text);
    TRY(find_thread_name(f, e, &e->tuples.data[tuple], e->threads.data[thread].def.process, interpreter, &sure));
    if (f->text.len_bytes && sure)
        *tries = 0;
    else
        --*tries;
    if (!f->text.len_bytes || (!sure && f->threads.data[of_thread]))
        return NULL;
    TRY(put_buf(f, &f->threads.data[of_thread]));
    model_name_thread(f->model, of_thread, f->threads.data[of_thread]);
    return NULL;
}
