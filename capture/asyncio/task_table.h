/* SPDX-License-Identifier: Apache-2.0 */
/* The asyncio tasks of a process, as a look found them. */
#ifndef CAPTURE_ASYNCIO_TASK_TABLE_H
#define CAPTURE_ASYNCIO_TASK_TABLE_H

#include <stdint.h>

#include "bpf/wire.h"
#include "formats/base/buf.h"
#include "formats/base/vec.h"

#define TASK_READER_TASKS_MAX 65536 /* of a process: more are not read */
#define TASK_READER_FRAMES_MAX 1024 /* of a task: of more the innermost are kept */
#define TASK_READER_FRAMES_IN_ALL 1000000 /* of a process: behind a task that comes to that no more are read */

enum task_state {
    TASK_AWAITS_TASK,   /* also by asyncio.gather() */
    TASK_AWAITS_FUTURE, /* also what is known to be none of the others */
    TASK_READY,         /* it can go on as soon as its loop has time for it */
    TASK_RUNNING,       /* its loop is in it; its frames are as far as they can be read while they run */
    TASK_CHANGED,       /* it changed while it was read: the rest is from before or after that, and may not fit together */
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
    uint32_t name, name_len_bytes;     /* in `names`, UTF-8, cut as in samples; 0 bytes: not readable */
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
    /* Tasks that were left out, at least: beyond a limit or the caller's time. Those that are TASK_CHANGED. */
    uint64_t unread, changed;
};
void task_table_deinit(struct task_table *t);

#endif
