/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of tasks that await each other: a task's own frames, and outwards of them those of the task that awaits it, and so
 * on. Each stack is known by a hash, made once for all tasks of a table; the frames are put together only where that is new.
 *
 * The table is of a hostile process: awaiters may be a ring, or a line as long as the table.
 */
#ifndef CAPTURE_ASYNCIO_TASK_CHAINS_H
#define CAPTURE_ASYNCIO_TASK_CHAINS_H

#include "capture/asyncio/task_reader.h"

/* Entries of a stack; those of the outermost tasks are cut. */
#define TASK_CHAIN_MAX 1024

/* What is found out of a task, by its index in the table. */
struct task_seen {
    uint64_t own, chain; /* hashes: of its frames, and of those of its awaiters with them */
    bool awaits_tasks;   /* another one has it as its awaiter */
    bool known;          /* `chain` is */
    uint32_t stack;      /* the last stack that it is part of, of those that were built in this look */
};

/* Scratch of one look at a time. {0} is empty. */
struct task_chains {
    VEC(struct task_seen) seen;
    VEC(uint32_t) path;
    uint64_t built_bytes;
    struct wire_python entries[TASK_CHAIN_MAX];
};
void task_chains_deinit(struct task_chains *c);

/* Fills `seen` for all tasks of the table. */
struct error *task_chains_find(struct task_chains *c, const struct task_table *table);
/*
 * Puts the stack of a task into `entries`, innermost first, with a WIRE_RUN behind the frames of each task. Returns how many
 * entries these are; `*cut`: there are more. Call after task_chains_find() of that table.
 */
uint32_t task_chains_build(struct task_chains *c, const struct task_table *table, uint32_t task, bool *cut);

static inline uint64_t task_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

#endif
