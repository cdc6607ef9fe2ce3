/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up CPython 3.14 in 64 KiB of memory, with asyncio's tasks in the list of its one thread, for the walk that finds
 * them (capture/asyncio/). What a task is, where its fields lie and how it waits are those of 3.14.10.
 */
#ifndef TESTS_UNIT_TASK_SPACE_H
#define TESTS_UNIT_TASK_SPACE_H

#include <string.h>

#include "capture/asyncio/task_walk.h"
#include "formats/cpython/layout_find.h"
#include "tests/unit/debug_offsets.h"

enum {
    SPACE_BASE = 0x10000,
    SPACE_BYTES = 0x10000,
    SPACE_RUNTIME = SPACE_BASE,
    SPACE_INTERPRETER = 0x12000,
    SPACE_THREAD = 0x17000,
    SPACE_TYPES = 0x18000, /* of enum space_type, 512 bytes each */
    SPACE_TYPE_NAMES = 0x1a000,
    SPACE_TASKS = 0x1b000, /* 256 bytes each, as are the next ones */
    SPACE_COROUTINES = 0x1c000,
    SPACE_FUTURES = 0x1d000,
    SPACE_CODE = 0x1e000,
    SPACE_STRINGS = 0x1f000,
    SPACE_TASK_NODE = 152,
    SPACE_THREAD_TASKS = 880,
    SPACE_INTERPRETER_TASKS = 10880,
};
enum space_type {
    SPACE_STR,
    SPACE_INT,
    SPACE_CODE_TYPE,
    SPACE_COROUTINE,
    SPACE_STEP,
    SPACE_FUTURE,
    SPACE_TASK,
    SPACE_CLASS, /* a class in Python, derived from SPACE_TASK */
};

struct task_space {
    uint8_t bytes[SPACE_BYTES];
    struct py_layout layout;
    struct py_walk walk;
    struct task_hints hints;
    struct task_walk tasks;
    struct task_table table;
    uint64_t reads, reads_max; /* further ones fail */
    uint64_t late_after;       /* questions for the time */
};

static inline uint64_t space_type(enum space_type type)
{
    return SPACE_TYPES + 512u * type;
}

static inline void space_put(struct task_space *s, uint64_t address, uint64_t value)
{
    memcpy(s->bytes + (address - SPACE_BASE), &value, sizeof value);
}

static inline bool space_read(void *ctx, uint64_t address, void *out, uint64_t len)
{
    struct task_space *s = ctx;
    uint64_t at = address - SPACE_BASE;

    if (s->reads++ >= s->reads_max || at > SPACE_BYTES || len > SPACE_BYTES - at)
        return false;
    memcpy(out, s->bytes + at, len);
    return true;
}

static inline int space_walk_read(void *ctx, void *out, uint32_t len, uint64_t address)
{
    return !space_read(ctx, address, out, len);
}

static inline bool space_is_late(void *ctx)
{
    struct task_space *s = ctx;

    return s->late_after-- == 0;
}

static inline void space_add_type(struct task_space *s, enum space_type type, const char *name, uint64_t flags, uint64_t base)
{
    uint64_t at = SPACE_TYPE_NAMES + 64u * type;

    memcpy(s->bytes + (at - SPACE_BASE), name, strlen(name) + 1);
    space_put(s, space_type(type) + 24, at);
    space_put(s, space_type(type) + 168, flags);
    space_put(s, space_type(type) + 256, base);
}

/* An ASCII string. Returns its address. */
static inline uint64_t space_string(struct task_space *s, int number, const char *text)
{
    uint64_t at = SPACE_STRINGS + 64u * (unsigned)number;

    space_put(s, at + 8, space_type(SPACE_STR));
    space_put(s, at + 16, strlen(text));
    space_put(s, at + 32, 1u << 2 | 1u << 5 | 1u << 6);
    memcpy(s->bytes + (at + 40 - SPACE_BASE), text, strlen(text));
    return at;
}

/* A suspended coroutine that awaits `next` at byte `offset` of its code. Returns its address. */
static inline uint64_t space_coroutine(struct task_space *s, int number, int code, unsigned offset, uint64_t next)
{
    uint64_t at = SPACE_COROUTINES + 256u * (unsigned)number, code_at = SPACE_CODE + 256u * (unsigned)code;

    space_put(s, at + 8, space_type(SPACE_COROUTINE));
    s->bytes[at + 67 - SPACE_BASE] = (uint8_t)-1;
    space_put(s, at + 72, code_at | 1); /* tagged */
    space_put(s, at + 72 + 56, code_at + 208 + offset);
    s->bytes[at + 72 + 74 - SPACE_BASE] = 1; /* its owner: a generator */
    space_put(s, at + 72 + 64, at + 72 + 80 + 16);
    space_put(s, at + 72 + 80 + 8, next);
    space_put(s, code_at + 8, space_type(SPACE_CODE_TYPE));
    return at;
}

static inline uint64_t space_future(struct task_space *s, int number, uint32_t state)
{
    uint64_t at = SPACE_FUTURES + 256u * (unsigned)number;

    space_put(s, at + 8, space_type(SPACE_FUTURE));
    space_put(s, at + 104, state);
    return at;
}

static inline uint64_t space_task_at(int number)
{
    return SPACE_TASKS + 256u * (unsigned)number;
}

/* A task, as the last one of the thread's list. Returns its address. */
static inline uint64_t space_task(struct task_space *s, int number, enum space_type type, uint64_t coroutine, uint64_t waiter,
                                  uint64_t name)
{
    uint64_t at = space_task_at(number), head = SPACE_THREAD + SPACE_THREAD_TASKS, last, node = at + SPACE_TASK_NODE;

    memcpy(&last, s->bytes + (head + 8 - SPACE_BASE), sizeof last);
    space_put(s, at + 8, space_type(type));
    space_put(s, at + 104, 1ull << 32); /* pending; it is a task */
    space_put(s, at + 120, waiter);
    space_put(s, at + 128, coroutine);
    space_put(s, at + 136, name);
    space_put(s, node, head);
    space_put(s, node + 8, last);
    space_put(s, last, node);
    space_put(s, head + 8, node);
    return at;
}

/* An interpreter without tasks. */
static inline void space_begin(struct task_space *s)
{
    static const struct py_asyncio asyncio = {.running_task = 872, .task_name = 136, .task_is_task = 108, .task_size = 168,
                                              .task_coroutine = 128, .task_awaited_by = 96, .task_awaited_by_is_set = 109,
                                              .task_node = SPACE_TASK_NODE, .thread_tasks = SPACE_THREAD_TASKS,
                                              .interpreter_tasks = SPACE_INTERPRETER_TASKS};
    struct error *err = py_layout_find(0x030e0af0, false, debug_offsets_3_14, sizeof debug_offsets_3_14, &s->layout);

    error_destroy(err);
    memset(s->bytes, 0, sizeof s->bytes);
    s->reads = 0;
    s->reads_max = s->late_after = UINT64_MAX;
    s->hints = (struct task_hints){0};
    s->tasks.objects = (struct py_objects){.layout = &s->layout, .str_type = space_type(SPACE_STR),
                                           .int_type = space_type(SPACE_INT), .read = space_read, .ctx = s};
    py_objects_begin(&s->tasks.objects);
    s->tasks.asyncio = asyncio;
    s->tasks.runtime = SPACE_RUNTIME;
    s->tasks.tgid = 100;
    s->tasks.is_late = space_is_late;
    s->tasks.hints = &s->hints;
    s->tasks.walk = &s->walk;
    s->tasks.out = &s->table;
    s->walk.config.layout = s->layout;
    s->walk.config.process.code_type = space_type(SPACE_CODE_TYPE);
    s->walk.memory = (struct walk_memory){space_walk_read, s};
    space_put(s, SPACE_RUNTIME + s->layout.runtime_interpreters_head, SPACE_INTERPRETER);
    space_put(s, SPACE_INTERPRETER + s->layout.interp_threads_head, SPACE_THREAD);
    space_put(s, SPACE_THREAD + s->layout.tstate_thread_id, 0x7000);
    space_put(s, SPACE_THREAD + s->layout.tstate_native_thread_id, 101);
    for (uint64_t head = SPACE_THREAD + SPACE_THREAD_TASKS, i = 0; i < 2; i++) {
        space_put(s, head, head);
        space_put(s, head + 8, head);
        head = SPACE_INTERPRETER + SPACE_INTERPRETER_TASKS;
        space_put(s, head, head);
        space_put(s, head + 8, head);
    }
    space_add_type(s, SPACE_COROUTINE, "coroutine", 0, 0);
    space_add_type(s, SPACE_STEP, "coroutine_wrapper", 0, 0);
    space_add_type(s, SPACE_FUTURE, "_asyncio.Future", 1 << 9 | 1 << 8, 0);
    space_add_type(s, SPACE_TASK, "_asyncio.Task", 1 << 9 | 1 << 8, space_type(SPACE_FUTURE));
    space_add_type(s, SPACE_CLASS, "coroutine", 1 << 9, space_type(SPACE_TASK));
}

/*
 * Three tasks: "outer" awaits "inner", which awaits a future by two coroutines with a step between them; Task-7, of a class
 * in Python, is ready.
 */
static inline void space_three_tasks(struct task_space *s)
{
    space_begin(s);
    uint64_t future = space_future(s, 0, 0), step = SPACE_FUTURES + 256;
    uint64_t second = space_coroutine(s, 1, 1, 20, future);
    space_put(s, step + 8, space_type(SPACE_STEP));
    space_put(s, step + 16, second);
    uint64_t first = space_coroutine(s, 0, 0, 10, step);
    uint64_t inner = space_task_at(1), number = SPACE_STRINGS + 64 * 9;
    uint64_t outer = space_task(s, 0, SPACE_TASK, space_coroutine(s, 2, 2, 30, inner), inner, space_string(s, 0, "outer"));
    space_task(s, 1, SPACE_TASK, first, future, space_string(s, 1, "inner"));
    space_put(s, inner + 96, outer);
    space_put(s, number + 8, space_type(SPACE_INT));
    space_put(s, number + 16, 1 << 3);
    space_put(s, number + 24, 7);
    space_task(s, 2, SPACE_CLASS, space_coroutine(s, 3, 0, 4, 0), 0, number);
}

static inline void space_end(struct task_space *s)
{
    task_walk_deinit(&s->tasks);
    task_table_deinit(&s->table);
    memset(&s->tasks, 0, sizeof s->tasks);
    memset(&s->table, 0, sizeof s->table);
}

#endif
