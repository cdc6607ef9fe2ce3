/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the interpreters to their threads, and from these to tasks. 3.14+ has a list of tasks in each thread state, and one
 * in the interpreter state for tasks whose thread has ended: rings of nodes that lie in the tasks.
 */
#include "capture/asyncio/task_walk.h"

#include <string.h>

#define INTERPRETERS_MAX 256
#define THREADS_MAX 4096
#define TASK_BYTES_MAX 256
#define BASES_MAX 8      /* classes between a type and the one that is known by name */
#define KINDS_MAX 16384  /* types that are remembered */
#define LATE_STEP 64     /* tasks between two looks at the clock */
#define TASK_PENDING 0   /* fut_state of _asynciomodule.c */

/* In a type object, behind the header of an object. */
enum { TYPE_NAME = 8, TYPE_FLAGS = 152, TYPE_BASE = 240, TYPE_BYTES = 248 };
enum { FLAG_IMMUTABLE = 1 << 8, FLAG_HEAP = 1 << 9 };

void task_walk_deinit(struct task_walk *w)
{
    VEC_DEINIT(&w->threads);
    map_deinit(&w->kinds);
    map_deinit(&w->tasks);
    VEC_DEINIT(&w->awaited_by);
    VEC_DEINIT(&w->awaited_by_is_set);
    buf_deinit(&w->storage);
}

bool task_walk_possible(const struct py_layout *layout, const struct py_behaviour *version, const struct py_asyncio *asyncio)
{
    if (version->awaits == PY_AWAITS_NONE || !layout->coroutine_frame || !layout->frame_stack)
        return false;
    return version->asyncio_offsets ? asyncio->task_coroutine != 0 : py_task_fields_of(layout->version) != NULL;
}

static void set_fields(struct task_walk *w)
{
    const struct py_task_fields *row = py_task_fields_of(w->objects.layout->version);
    uint16_t header = (uint16_t)w->objects.header;
    const struct py_asyncio *a = &w->asyncio;

    w->fields = (struct task_fields){.loop = header};
    if (row) {
        w->fields.state = header + row->state;
        w->fields.waiter = header + row->waiter;
        w->fields.coroutine = header + row->coroutine;
        w->fields.name = header + row->name;
        w->fields.size = header + row->size;
        return;
    }
    /* The state stands before the mark of a task, what the task waits for before its coroutine (Modules/_asynciomodule.c). */
    w->fields.state = a->task_is_task - 4;
    w->fields.waiter = a->task_coroutine - 8;
    w->fields.coroutine = a->task_coroutine;
    w->fields.name = a->task_name;
    w->fields.size = a->task_size;
    w->fields.is_task = a->task_is_task;
    w->fields.awaited_by = a->task_awaited_by;
    w->fields.awaited_by_is_set = a->task_awaited_by_is_set;
    w->fields.node = a->task_node;
}

/* ---- types ---- */

static enum task_kind kind_by_name(const char *name)
{
    static const struct {
        const char *name;
        enum task_kind kind;
    } known[] = {{"coroutine", TASK_KIND_COROUTINE},        {"generator", TASK_KIND_COROUTINE},
                 {"async_generator", TASK_KIND_COROUTINE},  {"coroutine_wrapper", TASK_KIND_STEP},
                 {"async_generator_asend", TASK_KIND_STEP}, {"async_generator_athrow", TASK_KIND_STEP},
                 {"anext_awaitable", TASK_KIND_STEP},       {"_asyncio.Future", TASK_KIND_FUTURE},
                 {"_asyncio.Task", TASK_KIND_TASK}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(name, known[i].name))
            return known[i].kind;
    }
    return TASK_KIND_OTHER;
}

static enum task_kind read_kind(struct task_walk *w, uint64_t type)
{
    const struct py_objects *r = &w->objects;
    uint8_t fields[TYPE_BYTES];
    char name[40] = "";
    bool gathering = false;

    for (int i = 0; i < BASES_MAX && type; i++) {
        if (!py_object_bytes(r, type + r->header, fields, sizeof fields))
            return TASK_KIND_OTHER;
        uint64_t flags = py_u64_of(fields + TYPE_FLAGS);
        if (!py_object_bytes(r, py_u64_of(fields + TYPE_NAME), name, sizeof name - 1))
            return TASK_KIND_OTHER;
        if (!(flags & FLAG_HEAP) || flags & FLAG_IMMUTABLE) {
            enum task_kind kind = kind_by_name(name);
            return kind == TASK_KIND_FUTURE && gathering ? TASK_KIND_GATHERING : kind;
        }
        gathering = gathering || !strcmp(name, "_GatheringFuture");
        type = py_u64_of(fields + TYPE_BASE);
    }
    return TASK_KIND_OTHER;
}

enum task_kind task_walk_kind(struct task_walk *w, uint64_t type)
{
    const uint64_t *known = map_get(&w->kinds, type);

    if (known)
        return (enum task_kind)*known;
    enum task_kind kind = read_kind(w, type);
    if (w->kinds.count < KINDS_MAX && !map_set(&w->kinds, type, kind))
        w->no_memory = true;
    return kind;
}

enum task_kind task_walk_kind_of(struct task_walk *w, uint64_t object)
{
    uint64_t type;

    return object && py_object_u64(&w->objects, object + w->objects.layout->code_type, &type) ? task_walk_kind(w, type)
                                                                                             : TASK_KIND_OTHER;
}

/* ---- threads ---- */

static void add_threads(struct task_walk *w, uint64_t interpreter, uint64_t interpreter_id)
{
    const struct py_layout *l = w->objects.layout;
    uint64_t state;

    if (!py_object_u64(&w->objects, interpreter + l->interp_threads_head, &state)) {
        w->torn = true;
        return;
    }
    while (state && w->threads.count < THREADS_MAX) {
        struct task_thread t = {.state = state, .loop = TASK_NONE};
        uint64_t native = 0;
        t.facts = (struct task_loop){.tid = w->tgid, .interpreter = interpreter, .interpreter_id = interpreter_id};
        if (!py_object_u64(&w->objects, state + l->tstate_next, &state) ||
            !py_object_u64(&w->objects, t.state + l->tstate_thread_id, &t.facts.thread_handle)) {
            w->torn = true;
            return;
        }
        if (l->tstate_native_thread_id != PY_NONE &&
            py_object_u64(&w->objects, t.state + l->tstate_native_thread_id, &native) && native && native <= INT32_MAX)
            t.facts.tid = (uint32_t)native;
        if (w->asyncio.running_task && w->fields.is_task)
            py_object_u64(&w->objects, t.state + w->asyncio.running_task, &t.running_task);
        if (!VEC_PUSH(&w->threads, t)) {
            w->no_memory = true;
            return;
        }
    }
    w->torn = w->torn || state; /* there are more */
}

/* The index of the thread's loop in the table. TASK_NONE: out of memory. */
static uint32_t loop_of(struct task_walk *w, struct task_thread *t)
{
    if (t->loop == TASK_NONE) {
        t->loop = (uint32_t)w->out->loops.count;
        if (!VEC_PUSH(&w->out->loops, t->facts)) {
            w->no_memory = true;
            t->loop = TASK_NONE;
        }
    }
    return t->loop;
}

/* The index of a loop of the interpreter whose thread has ended or is not known. */
static uint32_t loop_without_thread(struct task_walk *w, uint64_t interpreter)
{
    uint64_t id = WIRE_INTERPRETER_ID_NONE;

    for (size_t i = 0; i < w->threads.count; i++) {
        if (w->threads.data[i].facts.interpreter == interpreter)
            id = w->threads.data[i].facts.interpreter_id;
    }
    const struct task_loop loop = {w->tgid, 0, interpreter, id};
    for (uint32_t i = 0; i < w->out->loops.count; i++) {
        if (w->out->loops.data[i].interpreter == interpreter && !w->out->loops.data[i].thread_handle)
            return i;
    }
    if (!VEC_PUSH(&w->out->loops, loop)) {
        w->no_memory = true;
        return TASK_NONE;
    }
    return (uint32_t)w->out->loops.count - 1;
}

/* ---- tasks ---- */

/* Whether the task's coroutine runs: so it is also while the coroutine has an eager task run first. */
static bool coroutine_runs(struct task_walk *w, uint64_t coroutine)
{
    int8_t state;

    return task_walk_kind_of(w, coroutine) == TASK_KIND_COROUTINE &&
           py_object_bytes(&w->objects, coroutine + w->objects.layout->coroutine_state, &state, sizeof state) &&
           state == w->objects.version->runs;
}

static uint32_t state_of(struct task_walk *w, const struct task *t, const struct task_thread *thread)
{
    uint32_t state;

    if ((thread && thread->running_task == t->address) || coroutine_runs(w, t->coroutine))
        return TASK_RUNNING;
    if (!t->awaits) /* it was created, or has been woken */
        return TASK_READY;
    enum task_kind kind = task_walk_kind_of(w, t->awaits);
    if (kind != TASK_KIND_TASK && kind != TASK_KIND_FUTURE && kind != TASK_KIND_GATHERING)
        return TASK_AWAITS_FUTURE;
    if (py_object_bytes(&w->objects, t->awaits + w->fields.state, &state, sizeof state) && state != TASK_PENDING)
        return TASK_READY;
    return kind == TASK_KIND_TASK ? TASK_AWAITS_TASK : TASK_AWAITS_FUTURE;
}

static void add_name(struct task_walk *w, struct task *t, uint64_t name)
{
    const struct py_objects *r = &w->objects;
    const struct py_names names = {r->layout, r->str_type, r->int_type, r->read, r->ctx, &w->storage, NULL};
    uint8_t object[WIRE_TASK_MAX];
    uint32_t len = sizeof object;
    struct buf *text = &w->out->names;

    while (len >= 64 && !py_object_bytes(r, name, object, len))
        len /= 2; /* an object at the end of a mapping */
    t->name = (uint32_t)text->len_bytes;
    if (len < 64 || !py_task_name(&names, object, len, text))
        text->len_bytes = t->name;
    t->name_len_bytes = (uint32_t)text->len_bytes - t->name;
    w->no_memory = w->no_memory || text->bad || w->storage.bad;
}

bool task_walk_add(struct task_walk *w, uint64_t address, struct task_thread *thread, uint64_t interpreter)
{
    const struct task_fields *f = &w->fields;
    uint8_t bytes[TASK_BYTES_MAX + 8];
    uint32_t state, count = (uint32_t)w->out->tasks.count;

    if (count >= TASK_READER_TASKS_MAX || w->out->frames.count >= TASK_READER_FRAMES_IN_ALL || (count % LATE_STEP == 0 && w->is_late(w->objects.ctx))) {
        w->out->unread++;
        return false;
    }
    if (!py_object_bytes(&w->objects, address, bytes, f->size) ||
        task_walk_kind(w, py_u64_of(bytes + w->objects.layout->code_type)) != TASK_KIND_TASK ||
        (f->is_task && bytes[f->is_task] != 1)) {
        w->torn = true;
        return true;
    }
    memcpy(&state, bytes + f->state, sizeof state);
    if (state != TASK_PENDING || map_get(&w->tasks, address))
        return true;
    struct task t = {.address = address, .coroutine = py_u64_of(bytes + f->coroutine), .awaits = py_u64_of(bytes + f->waiter),
                     .awaiter = TASK_NONE, .first_frame = (uint32_t)w->out->frames.count};
    t.state = state_of(w, &t, thread);
    t.loop = thread ? loop_of(w, thread) : loop_without_thread(w, interpreter);
    add_name(w, &t, py_u64_of(bytes + f->name));
    task_frames_add(w, &t);
    bool is_set = f->awaited_by && bytes[f->awaited_by_is_set];
    uint64_t awaited_by = f->awaited_by ? py_u64_of(bytes + f->awaited_by) : 0;
    if (t.loop == TASK_NONE || !VEC_PUSH(&w->out->tasks, t) || !VEC_PUSH(&w->awaited_by, awaited_by) ||
        !VEC_PUSH(&w->awaited_by_is_set, is_set) || !map_set(&w->tasks, address, count))
        w->no_memory = true;
    return !w->no_memory;
}

/* Adds the tasks of a list, a ring of nodes that begins and ends at `head`. A node says which one comes before it. */
static void add_list(struct task_walk *w, uint64_t head, struct task_thread *thread, uint64_t interpreter)
{
    uint64_t node[2], at = head; /* next, previous */

    if (!py_object_bytes(&w->objects, head, node, sizeof node)) {
        w->torn = true;
        return;
    }
    for (uint32_t i = 0; node[0] != head; i++) {
        uint64_t before = at;
        at = node[0];
        if (i == TASK_READER_TASKS_MAX) {
            w->out->unread++;
            return;
        }
        if (!at || !py_object_bytes(&w->objects, at, node, sizeof node) || node[1] != before) {
            w->torn = w->torn || at || before != head; /* an interpreter that has not begun with asyncio has zeros there */
            return;
        }
        if (!task_walk_add(w, at - w->fields.node, thread, interpreter))
            return;
    }
}

static void clear(struct task_walk *w)
{
    struct task_table *out = w->out;

    out->tasks.count = out->frames.count = out->loops.count = 0;
    buf_clear(&out->names);
    out->unread = out->changed = 0;
    w->threads.count = w->awaited_by.count = w->awaited_by_is_set.count = 0;
    map_clear(&w->kinds);
    map_clear(&w->tasks);
    w->torn = w->no_memory = false;
    w->walk->codes.epoch = ++w->walk->codes.newest;
    w->walk->cursor.bytecode_index = WALK_BYTECODE_INDEX_NONE;
}

void task_walk_run(struct task_walk *w)
{
    const struct py_layout *l = w->objects.layout;
    uint64_t interpreter, next, id;

    clear(w);
    set_fields(w);
    if (w->fields.size > TASK_BYTES_MAX ||
        !py_object_u64(&w->objects, w->runtime + l->runtime_interpreters_head, &interpreter)) {
        w->torn = true;
        return;
    }
    for (int i = 0; i < INTERPRETERS_MAX && interpreter; i++, interpreter = next) {
        size_t first = w->threads.count;
        if (!py_object_u64(&w->objects, interpreter + l->interp_next, &next) ||
            !py_object_u64(&w->objects, interpreter + l->interp_id, &id)) {
            w->torn = true;
            break;
        }
        add_threads(w, interpreter, id);
        for (size_t t = first; w->fields.node && t < w->threads.count; t++)
            add_list(w, w->threads.data[t].state + w->asyncio.thread_tasks, &w->threads.data[t], interpreter);
        if (w->fields.node)
            add_list(w, interpreter + w->asyncio.interpreter_tasks, NULL, interpreter);
        else
            task_sets_add(w, interpreter);
    }
    task_awaiters_find(w);
}
