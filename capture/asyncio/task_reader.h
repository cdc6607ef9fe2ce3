/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the asyncio tasks of a process from outside: which there are, what each waits for, and the coroutines that it
 * waits in.
 *
 * Nothing stops the process. From 3.14 on the interpreter has lists of its tasks, whose places its own table of offsets
 * gives; in 3.12 and 3.13 they are in the sets that asyncio.all_tasks() reads. Tasks of other classes than asyncio.Task,
 * which those lists do not have, are not found.
 *
 * What is read is hostile: a list may be a ring, and a length may be a lie. So a look has limits of its own besides the
 * time that its caller allows, and what is over is counted.
 */
#ifndef CAPTURE_ASYNCIO_TASK_READER_H
#define CAPTURE_ASYNCIO_TASK_READER_H

#include <stdint.h>

#include "bpf/wire.h"
#include "capture/process/process.h"
#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/vec.h"

/* More tasks of a process, and more frames of a task, are not read. */
#define TASK_READER_TASKS_MAX 65536
#define TASK_READER_FRAMES_MAX 128

enum task_state {
    TASK_AWAITS_TASK,
    TASK_AWAITS_FUTURE, /* also what is known to be neither of the others */
    TASK_READY,         /* it can go on as soon as its loop has time for it */
    TASK_RUNNING,       /* its loop is in it; its frames are as far as they can be read while they run */
};

#define TASK_NONE UINT32_MAX /* an index: there is none */

struct task {
    uint64_t address, coroutine; /* addresses are used again: what tells tasks apart is these two and the name */
    uint64_t awaits;             /* address of the future or task that it awaits; 0: none, or not known */
    uint32_t awaiter;            /* index of a task that awaits it: of the first in the table; TASK_NONE */
    uint32_t awaiters;           /* how many do */
    uint32_t loop;               /* index in `loops` */
    uint32_t state;              /* enum task_state */
    uint32_t first_frame, frame_count; /* in `frames`, innermost first. 0 frames: none could be read */
    uint32_t name, name_len_bytes;     /* in `names`, UTF-8; 0 bytes: it could not be read */
};

/* The thread of an event loop, with what a struct wire_sample says of it. */
struct task_loop {
    uint32_t tid;            /* of the process, where the thread has ended or is not known */
    uint64_t thread_handle;  /* 0: not known */
    uint64_t interpreter, interpreter_id; /* id: WIRE_INTERPRETER_ID_NONE: not known */
};

/* Tasks of a process that are not done, as a look found them. {0} is empty; a table may be used again. */
struct task_table {
    VEC(struct task) tasks;
    VEC(struct wire_python) frames; /* as in a sample: fingerprints, WIRE_GENERATOR, WIRE_UNREAD; without WIRE_RUN */
    struct buf names;
    VEC(struct task_loop) loops;
    uint64_t time_ns; /* CLOCK_MONOTONIC, when the look was over */
    /* Tasks that were left out: beyond a limit or the caller's time; changed while they were read. */
    uint64_t unread, changed;
};
void task_table_deinit(struct task_table *t);

/* One for all processes: memory to read to, and what is known of each process from looks before. */
struct task_reader;
struct error *task_reader_create(struct task_reader **out);
/* Accepts NULL. */
void task_reader_destroy(struct task_reader *r);

enum task_support {
    TASKS_NO_ASYNCIO, /* no Python, or _asyncio is not loaded, as far as is known: it may come yet */
    TASKS_TOO_OLD,    /* before 3.12 */
    TASKS_UNKNOWN,    /* what is needed to find its tasks is not known: the interpreter is refused, or has no table */
    TASKS_READABLE,
};
/* Whether tasks of the process can be read. Reads nothing of the process. */
enum task_support task_reader_support(const struct process *p);

/*
 * Reads the tasks of a process that is TASKS_READABLE into `out`, which is emptied first. Stops after `budget_ns` of its
 * own time: tasks beyond that are counted in out->unread. What cannot be read leaves the table empty, and is no error; an
 * error is out of memory.
 */
struct error *task_reader_read(struct task_reader *r, const struct process *p, uint64_t budget_ns, struct task_table *out);
/* Forgets a process: call when it has ended. */
void task_reader_forget(struct task_reader *r, const struct process *p);
/* Returns the bytes of memory in use. */
uint64_t task_reader_bytes(const struct task_reader *r);

#endif
