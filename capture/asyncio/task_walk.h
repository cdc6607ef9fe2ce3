/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds asyncio's tasks in the memory of a process, and follows what each awaits. Everything is read through a function, so
 * that a look may be made at a process, at a recording, or at garbage.
 *
 * A task has the coroutine that it runs. One that is suspended has what it awaits on its stack of values: another
 * coroutine, or an object that leads to one, and in the end a future. All types are known by their names, which only the
 * interpreter and _asyncio give: those of classes in Python count as their base.
 */
#ifndef CAPTURE_ASYNCIO_TASK_WALK_H
#define CAPTURE_ASYNCIO_TASK_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/python_walk.h"
#include "capture/asyncio/task_table.h"
#include "formats/base/map.h"
#include "formats/cpython/image.h"
#include "formats/cpython/objects.h"
#include "formats/cpython/thread_name.h"

/* Where the fields of a task lie, in bytes. */
struct task_fields {
    uint16_t loop, state, waiter, coroutine, name, size;
    /* 3.14+; 0: there is no such field. */
    uint16_t is_task, awaited_by, awaited_by_is_set, node;
};

/* A thread of the process that has a thread state. */
struct task_thread {
    uint64_t state;        /* address of its thread state */
    uint64_t running_task; /* 3.14+; 0: none */
    uint32_t loop;         /* its index in the table's loops; TASK_NONE: it has no tasks so far */
    struct task_loop facts;
};

/* What was found of a type. */
enum task_kind {
    TASK_KIND_OTHER,
    TASK_KIND_COROUTINE,  /* or a generator, of either sort: has a frame */
    TASK_KIND_STEP,       /* leads to a coroutine, a generator, or another of its kind: its first field */
    TASK_KIND_FUTURE,
    TASK_KIND_GATHERING,  /* a future of asyncio.gather() */
    TASK_KIND_TASK,
};

/* Where in their dicts keys were found last, as struct py_name_hints. */
struct task_hints {
    uint32_t module, scheduled, eager, current, data, thread_id, children;
};

struct task_walk {
    /* Set by the caller. */
    struct py_objects objects;  /* with layout, types and how to read */
    struct py_asyncio asyncio;  /* 3.14+ */
    uint64_t runtime;           /* address of _PyRuntime */
    uint32_t tgid;
    bool (*is_late)(void *ctx); /* whether to stop: asked every few tasks, with objects.ctx */
    struct task_hints *hints;
    struct py_walk *walk;       /* its config is set; code objects are read by it */
    struct task_table *out;
    /* Its own; {0} at first, freed by task_walk_deinit(), used again. */
    struct task_fields fields;
    VEC(struct task_thread) threads;
    struct map kinds;           /* of a type's address: enum task_kind + 1 */
    struct map tasks;           /* of a task's address: its index */
    VEC(uint64_t) awaited_by;   /* of each task: what its field says */
    VEC(bool) awaited_by_is_set;
    struct buf storage;
    uint64_t edges;             /* that may still be read, from a task to what awaits it */
    bool torn;                  /* something on the way to tasks could not be read, or did not hang together */
    bool no_memory;
};

/* Whether enough is known of the interpreter to find its tasks. */
bool task_walk_possible(const struct py_layout *layout, const struct py_behaviour *version, const struct py_asyncio *asyncio);
/* Empties w->out and fills it. What cannot be read is left out. */
void task_walk_run(struct task_walk *w);
void task_walk_deinit(struct task_walk *w);

/* ---- for the parts of the walk ---- */

enum task_kind task_walk_kind(struct task_walk *w, uint64_t type);
/* The kind of an object; OTHER also when it cannot be read. */
enum task_kind task_walk_kind_of(struct task_walk *w, uint64_t object);
/* Adds a task that was found in a list or a set, of a thread or (NULL) of the thread of its loop. False: stop. */
bool task_walk_add(struct task_walk *w, uint64_t address, struct task_thread *thread, uint64_t interpreter);
/* A set object of the process, slot by slot. */
struct task_set {
    uint64_t table;
    uint32_t slots, at;
    bool torn; /* some of it could not be read */
};
/* False: it cannot be read. */
bool task_set_open(struct task_walk *w, uint64_t set, struct task_set *out);
/* The next key, in no order; keys that were removed show as objects that are nothing. False: the end, or the time is over. */
bool task_set_next(struct task_walk *w, struct task_set *s, uint64_t *key);
/* Adds all tasks of an interpreter whose version has sets of them. */
void task_sets_add(struct task_walk *w, uint64_t interpreter);
/* Sets `awaiter` and `awaiters` of all tasks in the table. */
void task_awaiters_find(struct task_walk *w);
/* Adds the frames of a coroutine and of what it awaits to the table, and to `task`, innermost first. */
void task_frames_add(struct task_walk *w, struct task *task);

#endif
