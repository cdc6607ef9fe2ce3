/* SPDX-License-Identifier: Apache-2.0 */
/* Names are looked up in the running process by the thread's handle, at growing intervals. */
#include "capture/process/python_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/target_memory.h"
#include "formats/base/clock.h"
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

/* Reads the current name. If it differs from `known` it is read twice, since the program may replace it meanwhile. */
static bool read_name(struct python_names *n, const struct py_names *names, uint64_t interpreter, uint64_t handle,
                      const char *known)
{
    buf_clear(&n->text);
    if (!py_thread_name(names, interpreter, handle, &n->text) || !n->text.len_bytes)
        return false;
    if (is_name(&n->text, known))
        return true;
    buf_clear(&n->again);
    return py_thread_name(names, interpreter, handle, &n->again) && n->text.len_bytes == n->again.len_bytes &&
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
    const struct py_layout *l = names.layout;
    uint64_t first = 0;
    /* A thread has a name in each interpreter that it ran in. Show the one of the main interpreter. */
    if (l->interp_id != PY_NONE && m->interpreter_id)
        target_read(pid, p->python->python.runtime_vaddr + p->python_bias + l->runtime_interpreters_head + 8, &first,
                  sizeof first);
    if (!(first && read_name(n, &names, first, t->handle, t->python_name)) &&
        !read_name(n, &names, m->interpreter, t->handle, t->python_name))
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
