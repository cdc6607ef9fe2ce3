/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names are looked up in the running process, at growing intervals: the main thread's where threading has it, the others'
 * by their handles. The samples tell the handle, and they are older than what is read: by then the thread may have
 * ended, and another one may have its handle.
 */
#include "capture/process/python_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/target_memory.h"
#include "formats/base/clock.h"
#include "formats/cpython/main_file.h"
#include "formats/cpython/thread_name.h"

#define WAIT_MIN_MS 250
#define WAIT_MAX_MS 16000

void python_names_deinit(struct python_names *n)
{
    buf_deinit(&n->storage);
    buf_deinit(&n->text);
    buf_deinit(&n->again);
}

static struct py_names names_of(struct python_names *n, struct process *p, pid_t *pid)
{
    const struct py_image *image = &p->python->python;

    *pid = (pid_t)p->tgid;
    return (struct py_names){
        .layout = &image->layout,
        .str_type = image->str_type_vaddr ? image->str_type_vaddr + p->python_bias : 0,
        .int_type = image->int_type_vaddr ? image->int_type_vaddr + p->python_bias : 0,
        .read = target_read_fn,
        .ctx = pid,
        .storage = &n->storage,
        .hints = &p->name_hints,
    };
}

/* Whether `text` is equal to `name`, which was cut at the first NUL. */
static bool is_name(const struct buf *text, const char *name)
{
    size_t len = name ? strlen(name) : 0;

    return name && strnlen((const char *)text->data, text->len_bytes) == len && !memcmp(text->data, name, len);
}

/* More interpreters than these are garbage. */
#define INTERPRETERS_MAX 256

/* The main interpreter; 0: it cannot be told. */
static uint64_t main_interpreter(const struct process *p, const struct py_names *names, const struct wire_sample *m)
{
    const struct py_layout *l = names->layout;
    const pid_t *pid = names->ctx;
    uint64_t at = m->interpreter, next;

    if (!m->interpreter_id)
        return at;
    if (l->interp_id != PY_NONE)
        return target_read(*pid, p->python->python.runtime_vaddr + p->python_bias + l->runtime_interpreters_head + 8, &at,
                           sizeof at)
                   ? at
                   : 0;
    for (uint32_t i = 0; at && i < INTERPRETERS_MAX; i++) {
        if (!target_read(*pid, at + l->interp_next, &next, sizeof next))
            return 0;
        if (!next) /* the list begins with the newest one */
            return at;
        at = next;
    }
    return 0;
}

/* A thread whose name is wanted: the process's first one, or one that has a handle. */
struct asked {
    const struct process *p;
    const struct py_names *names;
    uint64_t interpreter, handle;
    uint32_t tid;
};

static bool has_ended(const struct asked *a)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%" PRIu32 "/task/%" PRIu32, a->p->tgid, a->tid);
    return access(path, F_OK) != 0;
}

static bool ask(const struct asked *a, struct buf *out)
{
    bool counts_alike = a->p->ns_tgid == a->p->tgid, proven;

    buf_clear(out);
    if (a->tid == a->p->tgid)
        return py_main_thread_name(a->names, a->interpreter, out) && out->len_bytes;
    return py_thread_name(a->names, a->interpreter, a->handle, counts_alike ? a->tid : 0, out, &proven) && out->len_bytes &&
           (proven || !has_ended(a));
}

/* Reads the current name. If it differs from `known` it is read twice, since the program may replace it meanwhile. */
static bool read_name(struct python_names *n, const struct asked *a, const char *known)
{
    if (!ask(a, &n->text))
        return false;
    if (is_name(&n->text, known))
        return true;
    return ask(a, &n->again) && n->text.len_bytes == n->again.len_bytes &&
           !memcmp(n->text.data, n->again.data, n->text.len_bytes);
}

bool python_names_thread(struct python_names *n, struct process *p, struct thread *t, const struct wire_sample *m)
{
    pid_t pid;

    if (!m->thread_handle || (m->thread_handle == t->handle && m->time_ns < t->name_due_ns))
        return false;
    if (m->thread_handle != t->handle) { /* the tid was reused by another thread */
        t->handle = m->thread_handle;
        t->name_wait_ms = 0;
        free(t->python_name);
        t->python_name = NULL;
    }
    t->name_wait_ms = !t->name_wait_ms ? WAIT_MIN_MS : t->name_wait_ms < WAIT_MAX_MS ? 2 * t->name_wait_ms : WAIT_MAX_MS;
    t->name_due_ns = m->time_ns + t->name_wait_ms * NS_PER_MS;

    const struct py_names names = names_of(n, p, &pid);
    uint64_t main = main_interpreter(p, &names, m);
    struct asked asked = {.p = p, .names = &names, .interpreter = main, .handle = t->handle, .tid = t->tid};
    bool found = main && read_name(n, &asked, t->python_name);
    /* A thread has a name in each interpreter that it ran in. Show the one of the main interpreter. */
    if (!found && main != m->interpreter && t->tid != p->tgid) {
        asked.interpreter = m->interpreter;
        found = read_name(n, &asked, t->python_name);
    }
    if (!found)
        return false;
    if (is_name(&n->text, t->python_name))
        return false;
    char *name = strndup((const char *)n->text.data, n->text.len_bytes);
    if (!name)
        return false;
    free(t->python_name);
    t->python_name = name;
    return true;
}

bool python_names_task(struct python_names *n, struct process *p, const struct wire_sample *m, const uint8_t *task)
{
    pid_t pid;
    const struct py_names names = names_of(n, p, &pid);

    buf_clear(&n->text);
    return py_task_name(&names, task, m->task_len_bytes, &n->text);
}

/* The interpreter that the program began with; 0: there is none yet, or it is not known where. */
static uint64_t first_interpreter(const struct process *p)
{
    const struct py_image *image = &p->python->python;
    const struct py_layout *l = &image->layout;
    uint64_t at = image->interpreters_vaddr, interpreter = 0;
    pid_t pid = (pid_t)p->tgid;

    if (!at && image->runtime_vaddr && l->runtime_interpreters_head != PY_NONE)
        at = image->runtime_vaddr + l->runtime_interpreters_head;
    if (!at)
        return 0;
    /* Behind the newest one in the list is the first. */
    if (l->interp_id != PY_NONE && target_read(pid, at + p->python_bias + 8, &interpreter, sizeof interpreter) && interpreter)
        return interpreter;
    return target_read(pid, at + p->python_bias, &interpreter, sizeof interpreter) ? interpreter : 0;
}

bool python_names_main_file(struct python_names *n, struct process *p, bool *of_parent)
{
    pid_t pid;
    const struct py_names names = names_of(n, p, &pid);
    uint64_t interpreter = first_interpreter(p);

    buf_clear(&n->text);
    if (!py_main_file(&names, interpreter, &n->text) || n->text.bad)
        return false;
    *of_parent = py_main_is_of_parent(&names, interpreter);
    return true;
}
