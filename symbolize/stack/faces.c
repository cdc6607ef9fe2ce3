/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/stack/faces.h"

#include <string.h>

#include "symbolize/trace/container.h"

enum {
    OUTERMOST = 8,  /* frames that are looked at: the thread's start has at most three */
    TRIES_MAX = 64, /* samples of a thread; in all of them threading may have been the outermost and only module */
    STEP_WORK = 5,  /* for a frame of a stack that is passed, see limits.h */
};

void faces_init(struct faces *f, struct model *model, struct frames *frames)
{
    *f = (struct faces){.model = model, .frames = frames};
}

void faces_deinit(struct faces *f)
{
    VEC_DEINIT(&f->processes);
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

/* Appends the name of what a process runs, as PROCESS has it. False, and nothing is appended: it has none. */
static bool put_program(const struct epoch *e, const struct trace_process *def, struct buf *out)
{
    const char *program = epoch_text(e, def->program);

    switch (def->program_kind) {
    case TRACE_PROGRAM_FILE:
    case TRACE_PROGRAM_SCRIPT:
        break;
    case TRACE_PROGRAM_MODULE:
        buf_put_str(out, "-m ");
        break;
    case TRACE_PROGRAM_COMMAND:
        program = *program ? program : "-c";
        break;
    default:
        return false;
    }
    buf_put_str(out, program);
    return *program;
}

/* The same as a text of the model; 0: none. */
static struct error *recorded_name(struct faces *f, const struct epoch *e, const struct trace_process *def, uint32_t *out)
{
    *out = 0;
    buf_clear(&f->text);
    return put_program(e, def, &f->text) ? put_buf(f, out) : NULL;
}

void faces_put_name(const struct epoch *e, uint32_t process, struct buf *out)
{
    const struct epoch_process *p = &e->processes.data[process];

    if (!put_program(e, &p->def, out))
        buf_put_str(out, epoch_text(e, p->comm));
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

    TRY(frames_string(f->frames, e, p->comm, &names.comm));
    TRY(frames_string(f->frames, e, p->def.cgroup, &names.cgroup));
    TRY(recorded_name(f, e, &p->def, &names.name));
    if (container_of_cgroup(epoch_text(e, p->def.cgroup), container))
        TRY(put_text(f, container, strlen(container), &names.container));
    *number = model_process(f->model, identity, &names);
    if (*number == MODEL_NONE || !VEC_EXTEND_ZERO(&f->processes, (size_t)*number + 1))
        return error_no_memory();
    if (!names.name && f->processes.data[*number])
        model_name_process(f->model, *number, f->processes.data[*number]);
    return NULL;
}

/* ---- threads ---- */

struct error *faces_thread(struct faces *f, const struct epoch *e, uint32_t thread, uint32_t process, uint32_t *number,
                           struct face_wanted *wanted)
{
    const struct epoch_thread *t = &e->threads.data[thread];
    const struct epoch_process *p = &e->processes.data[t->def.process];
    bool first = t->def.tid == p->def.tgid;
    bool nameless = !first && !t->python_name && p->def.program_kind != TRACE_PROGRAM_UNRECORDED &&
                    !strcmp(epoch_text(e, t->name), epoch_text(e, p->comm));
    uint32_t name;

    TRY(frames_string(f->frames, e, t->python_name ? t->python_name : t->name, &name));
    *number = model_thread(f->model, process, t->def.tid, name);
    if (*number == MODEL_NONE || !VEC_EXTEND_ZERO(&f->threads, (size_t)*number + 1))
        return error_no_memory();
    if (nameless && f->threads.data[*number])
        model_name_thread(f->model, *number, f->threads.data[*number]);
    *wanted = (struct face_wanted){0};
    if (nameless && !f->threads.data[*number])
        wanted->what = FACE_OF_THREAD;
    else if (first && p->def.program_kind == TRACE_PROGRAM_UNKNOWN && !f->processes.data[process])
        wanted->what = FACE_OF_PROCESS;
    return NULL;
}

/* ---- what stacks tell ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* The last component of a path; of a __main__.py that of its folder, which is the package. */
static void put_main_module(struct buf *out, const char *file)
{
    const char *base = base_name(file), *start = base;
    size_t len = strlen(base);

    if (!strcmp(base, "__main__.py") && base > file + 1) {
        for (start = base - 1; start > file && start[-1] != '/';)
            start--;
        len = (size_t)(base - 1 - start);
    }
    buf_put(out, start, len);
}

static bool is_in_runpy(const struct emit_frame *frame)
{
    return !strcmp(frame->file, "<frozen runpy>") || !strcmp(base_name(frame->file), "runpy.py");
}

/* Finds the name of a process in the outermost frames of its first thread. Empty: it is not there. */
static void find_main_module(const struct emit_frame *const *frames, uint32_t count, struct buf *out)
{
    uint32_t i = 0;

    while (i < count && is_in_runpy(frames[i])) /* which runs the main module for -m */
        i++;
    if (i == count || strcmp(frames[i]->function, "<module>"))
        return;
    if (!strcmp(frames[i]->file, "<string>"))
        buf_put_str(out, "-c");
    else if (frames[i]->file[0] != '<') /* <stdin> */
        put_main_module(out, frames[i]->file);
}

static void find_function(const struct emit_frame *const *frames, uint32_t count, struct buf *out)
{
    uint32_t i = 0;

    while (i < count && !strcmp(base_name(frames[i]->file), "threading.py"))
        i++;
    if (i == count || !*frames[i]->function)
        return;
    buf_put_str(out, frames[i]->function);
    if (*frames[i]->file)
        buf_printf(out, " (%s)", base_name(frames[i]->file));
}

/* The outermost frames of a Python stack, outermost first. */
static struct error *outermost(struct faces *f, const struct epoch *e, uint32_t stack, uint32_t interpreter,
                               const struct emit_frame *frames[OUTERMOST], uint32_t *count)
{
    uint32_t depth = e->stacks.data[stack].depth, ids[OUTERMOST], numbers[OUTERMOST];

    if (!limits_work(f->model->limits, STEP_WORK * (uint64_t)depth))
        return error_no_memory();
    *count = depth < OUTERMOST ? depth : OUTERMOST;
    for (; depth; depth--) {
        if (depth <= OUTERMOST)
            ids[depth - 1] = e->stacks.data[stack].frame;
        stack = e->stacks.data[stack].parent;
    }
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

struct error *faces_look(struct faces *f, const struct epoch *e, uint32_t tuple, uint32_t thread, uint32_t interpreter,
                         struct face_wanted *wanted)
{
    const struct trace_tuple *t = &e->tuples.data[tuple];
    uint32_t process = f->model->threads.data[thread].process;
    const struct emit_frame *frames[OUTERMOST];
    uint32_t count = 0;

    if (!t->python_stack || t->python_end != LOSS_complete)
        return NULL;
    TRY(outermost(f, e, t->python_stack, interpreter, frames, &count));
    buf_clear(&f->text);
    if (wanted->what == FACE_OF_PROCESS)
        find_main_module(frames, count, &f->text);
    else
        find_function(frames, count, &f->text);
    if (!f->text.len_bytes) {
        wanted->what = ++wanted->tries == TRIES_MAX ? FACE_NONE : wanted->what;
        return NULL;
    }
    if (wanted->what == FACE_OF_PROCESS) {
        TRY(put_buf(f, &f->processes.data[process]));
        model_name_process(f->model, process, f->processes.data[process]);
    } else {
        TRY(put_buf(f, &f->threads.data[thread]));
        model_name_thread(f->model, thread, f->threads.data[thread]);
    }
    wanted->what = FACE_NONE;
    return NULL;
}
