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

#include "capture/asyncio/task_table.h"
#include "capture/process/process.h"
#include "formats/base/err.h"

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
 * own CPU time: tasks beyond that are counted in out->unread. What cannot be read leaves the table empty, and is no error; an
 * error is out of memory.
 */
struct error *task_reader_read(struct task_reader *r, const struct process *p, uint64_t budget_ns, struct task_table *out);
/* Forgets a process, by its `life`: call when it has ended. */
void task_reader_forget(struct task_reader *r, uint64_t life);
/* Returns the bytes of memory in use. */
uint64_t task_reader_bytes(const struct task_reader *r);

#endif
