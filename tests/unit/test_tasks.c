/* SPDX-License-Identifier: Apache-2.0 */
/* asyncio's tasks in made-up memory: what is found, and what a process that lies can make the walk do. */
#include "tests/unit/test.h"

#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/asyncio/loop_threads.h"
#include "capture/asyncio/task_memory.h"
#include "formats/base/clock.h"
#include "tests/unit/task_space.h"

static struct task_space space;

static void assert_name(const struct task *t, const char *name)
{
    assert_int_equal(t->name_len_bytes, strlen(name));
    assert_memory_equal(space.table.names.data + t->name, name, strlen(name));
}

static void assert_frame(const struct task *t, uint32_t index, int code, int offset)
{
    assert_true(index < t->frame_count);
    const struct wire_python *f = &space.table.frames.data[t->first_frame + index];
    assert_int_equal(f->address, (SPACE_CODE + 256u * (unsigned)code) | WIRE_GENERATOR);
    assert_int_equal(f->offset, offset);
}

static int end(void **state)
{
    (void)state;
    space_end(&space);
    return 0;
}

TEST_WITH(three_tasks, NULL, end)
{
    const struct task_table *t = &space.table;

    space_three_tasks(&space);
    task_walk_run(&space.tasks);
    assert_int_equal(t->tasks.count, 3);
    assert_int_equal(t->unread + t->changed, 0);
    assert_false(space.tasks.torn);
    assert_int_equal(t->loops.count, 1);
    assert_int_equal(t->loops.data[0].tid, 101);
    assert_int_equal(t->loops.data[0].thread_handle, 0x7000);
    assert_int_equal(t->loops.data[0].interpreter, SPACE_INTERPRETER);
    const struct task *outer = &t->tasks.data[0], *inner = &t->tasks.data[1], *seven = &t->tasks.data[2];
    assert_name(outer, "outer");
    assert_int_equal(outer->state, TASK_AWAITS_TASK);
    assert_int_equal(outer->awaits, inner->address);
    assert_int_equal(outer->awaiter, TASK_NONE);
    assert_int_equal(outer->frame_count, 1);
    assert_frame(outer, 0, 2, 30);
    assert_name(inner, "inner");
    assert_int_equal(inner->state, TASK_AWAITS_FUTURE);
    assert_int_equal(inner->awaiter, 0);
    assert_int_equal(inner->awaiters, 1);
    assert_int_equal(inner->frame_count, 2);
    assert_frame(inner, 0, 1, 20);
    assert_frame(inner, 1, 0, 10);
    assert_name(seven, "Task-7");
    assert_int_equal(seven->state, TASK_READY);
    assert_frame(seven, 0, 0, 4);
}

TEST_WITH(states, NULL, end)
{
    space_three_tasks(&space);
    space_future(&space, 0, 2); /* the future is done: "inner" can go on */
    space_put(&space, SPACE_THREAD + 872, space_task_at(2));
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.data[1].state, TASK_READY);
    assert_int_equal(space.table.tasks.data[2].state, TASK_RUNNING);
    /* One that is not the thread's current task, but whose coroutine runs: it has an eager task run first. */
    int8_t *frame_state = (int8_t *)space.bytes + (space.table.tasks.data[1].coroutine + 67 - SPACE_BASE);
    *frame_state = 0;
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.data[1].state, TASK_RUNNING);
    *frame_state = -1;
    /* A task that is done is none. */
    space_put(&space, space_task_at(1) + 104, 1ull << 32 | 2);
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.count, 2);
    assert_int_equal(space.table.tasks.data[0].state, TASK_READY);
    assert_false(space.tasks.torn);
}

/* A list that never comes back, or leads nowhere, is left where it breaks off; and that shows. */
TEST_WITH(broken_lists, NULL, end)
{
    uint64_t node = space_task_at(1) + SPACE_TASK_NODE;

    space_three_tasks(&space);
    space_put(&space, node, node);
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.count, 2);
    assert_true(space.tasks.torn);
    space_put(&space, node, 0x7fff0000);
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.count, 2);
    assert_true(space.tasks.torn);
    space_put(&space, node, 0);
    task_walk_run(&space.tasks);
    assert_true(space.tasks.torn);
    /* A node in what is no task. */
    space_three_tasks(&space);
    space_put(&space, space_task_at(1) + 8, space_type(SPACE_FUTURE));
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.count, 2);
    assert_true(space.tasks.torn);
}

/* Coroutines that await each other in a ring have as many frames as a task may, and no more. */
TEST_WITH(ring_of_coroutines, NULL, end)
{
    space_three_tasks(&space);
    space_coroutine(&space, 1, 1, 20, SPACE_COROUTINES);
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.data[1].frame_count, TASK_READER_FRAMES_MAX);
    /* One that is no coroutine any more ends the chain. */
    space_put(&space, SPACE_COROUTINES + 256 + 8, space_type(SPACE_STR));
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.data[1].frame_count, 1);
}

/* A set of those that await a task. */
TEST_WITH(set_of_awaiters, NULL, end)
{
    const uint64_t set = SPACE_FUTURES + 0x400, table = SPACE_FUTURES + 0x500;

    space_three_tasks(&space);
    space_put(&space, set + 32, 7);
    space_put(&space, set + 40, table);
    space_put(&space, table + 16, space_task_at(2));
    space_put(&space, table + 64, space_task_at(0));
    space_put(&space, space_task_at(1) + 96, set);
    space.bytes[space_task_at(1) + 109 - SPACE_BASE] = 1;
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.data[1].awaiters, 2);
    assert_int_equal(space.table.tasks.data[1].awaiter, 0);
    /* A size that is a lie. */
    space_put(&space, set + 32, UINT64_MAX);
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.data[1].awaiters, 0);
}

/* When the time is over the walk stops, and says that there was more. */
TEST_WITH(time_is_over, NULL, end)
{
    space_three_tasks(&space);
    space.late_after = 0;
    task_walk_run(&space.tasks);
    assert_int_equal(space.table.tasks.count, 0);
    assert_true(space.table.unread > 0);
}

/* Whatever read fails, what is found is among what there is. */
TEST_WITH(reads_that_fail, NULL, end)
{
    uint64_t all;

    space_three_tasks(&space);
    task_walk_run(&space.tasks);
    all = space.reads;
    for (uint64_t max = 0; max < all; max++) {
        space.reads = 0;
        space.reads_max = max;
        task_walk_run(&space.tasks);
        assert_true(space.table.tasks.count <= 3);
        assert_true(space.table.tasks.count == 3 || space.tasks.torn || space.table.unread); /* who is missing is not gone */
        for (size_t i = 0; i < space.table.tasks.count; i++)
            assert_true(space.table.tasks.data[i].frame_count <= 2);
    }
}

TEST_WITH(what_must_be_known, NULL, end)
{
    struct py_asyncio none = {0};

    space_begin(&space);
    assert_true(task_walk_possible(&space.layout, space.tasks.objects.version, &space.tasks.asyncio));
    assert_false(task_walk_possible(&space.layout, space.tasks.objects.version, &none));
    struct py_layout old = {.version = 0x030b07f0};
    assert_false(task_walk_possible(&old, py_behaviour_of(old.version), &none));
}

/* ---- pages ---- */

#define PAGES 64
struct pages {
    uint8_t bytes[PAGES * 4096];
    uint32_t calls, ranges;
    uint64_t hole; /* address of a page that cannot be read */
};
#define PAGES_AT 0x100000ull

static uint64_t read_pages(void *ctx, const struct iovec *ranges, uint32_t count, void *out)
{
    struct pages *p = ctx;
    uint64_t got = 0;

    p->calls++;
    p->ranges += count;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)(uintptr_t)ranges[i].iov_base, len = ranges[i].iov_len;
        for (; len; at += 4096, len -= 4096, got += 4096) {
            if (at < PAGES_AT || at >= PAGES_AT + sizeof p->bytes || at == p->hole)
                return got;
            memcpy((uint8_t *)out + got, p->bytes + (at - PAGES_AT), 4096);
        }
    }
    return got;
}

TEST(pages_are_read_once)
{
    static struct pages p;
    struct task_memory m = {.fn = read_pages, .ctx = &p, .budget_ns = UINT64_MAX};
    uint64_t used[PAGES];
    uint8_t out[5000];

    for (size_t i = 0; i < sizeof p.bytes; i++)
        p.bytes[i] = (uint8_t)(i / 7);
    task_memory_begin(&m, NULL, 0);
    assert_true(task_memory_read(&m, PAGES_AT + 4000, out, sizeof out));
    assert_memory_equal(out, p.bytes + 4000, sizeof out);
    assert_int_equal(p.calls, 1); /* the group of pages that it lies in */
    assert_true(task_memory_read(&m, PAGES_AT + 0x8010, out, 8));
    assert_int_equal(p.calls, 2);
    assert_int_equal(task_memory_used(&m, NULL, 0), 4);
    assert_int_equal(task_memory_used(&m, used, PAGES), 4);
    assert_int_equal(used[3], PAGES_AT + 0x8000);
    /* The next look begins with those, in one call of two ranges. */
    p.calls = p.ranges = 0;
    task_memory_begin(&m, used, 4);
    assert_int_equal(p.calls, 1);
    assert_int_equal(p.ranges, 2);
    assert_true(task_memory_read(&m, PAGES_AT + 0x8010, out, 8));
    assert_int_equal(p.calls, 1);
    assert_int_equal(task_memory_used(&m, used, PAGES), 1);
    task_memory_deinit(&m);
}

TEST(pages_that_change)
{
    static struct pages p;
    struct task_memory m = {.fn = read_pages, .ctx = &p, .budget_ns = UINT64_MAX};
    uint8_t out[8];

    task_memory_begin(&m, NULL, 0);
    assert_true(task_memory_read(&m, PAGES_AT + 16, out, sizeof out));
    assert_false(task_memory_changed(&m));
    p.bytes[17] = 5;
    assert_true(task_memory_changed(&m));
    assert_true(task_memory_read(&m, PAGES_AT + 16, out, sizeof out));
    assert_int_equal(out[1], 5);
    assert_false(task_memory_changed(&m));
    /* A page that is gone has changed. */
    p.hole = PAGES_AT;
    assert_true(task_memory_changed(&m));
    task_memory_deinit(&m);
}

TEST(pages_that_are_not_there)
{
    static struct pages p;
    struct task_memory m = {.fn = read_pages, .ctx = &p, .budget_ns = UINT64_MAX};
    const uint64_t wanted[] = {PAGES_AT, PAGES_AT + 0x1000, PAGES_AT + 0x2000};
    uint8_t out[16];

    p.hole = PAGES_AT + 0x1000;
    task_memory_begin(&m, wanted, 3);
    p.calls = 0;
    assert_true(task_memory_read(&m, PAGES_AT + 0x2000, out, 8));
    assert_true(task_memory_read(&m, PAGES_AT + 8, out, 8));
    assert_int_equal(p.calls, 0);
    assert_false(task_memory_read(&m, PAGES_AT + 0x1000, out, 8));
    assert_false(task_memory_read(&m, PAGES_AT + 0xff8, out, 16)); /* half of it is there */
    assert_false(task_memory_read(&m, 0, out, 8));
    assert_false(task_memory_read(&m, UINT64_MAX - 3, out, 8));
    /* A neighbour that is missing does not hide a page. */
    p.hole = PAGES_AT + 0x4000;
    assert_true(task_memory_read(&m, PAGES_AT + 0x5000, out, 8));
    /* When the time is over nothing more is read. */
    m.budget_ns = 0;
    p.calls = 0;
    assert_false(task_memory_read(&m, PAGES_AT + 0x9000, out, 8));
    assert_int_equal(p.calls, 0);
    assert_true(m.late);
    assert_true(task_memory_read(&m, PAGES_AT + 8, out, 8));
    task_memory_deinit(&m);
}

/* A look whose thread was given no CPU is not late, so that a busy host does not hide tasks. */
TEST(time_of_a_look)
{
    const uint64_t budget_ns = 60 * NS_PER_S;
    struct task_memory m = {.budget_ns = budget_ns};

    task_memory_start_clock(&m);
    assert_false(task_memory_is_late(&m));
    m.began_ns -= (TASK_MEMORY_WALL_TIMES - 1) * budget_ns;
    assert_false(task_memory_is_late(&m));
    m.cpu_began_ns -= budget_ns;
    assert_true(task_memory_is_late(&m));
    /* Not for ever: what it reads may make it wait. */
    m.late = false;
    task_memory_start_clock(&m);
    m.began_ns -= TASK_MEMORY_WALL_TIMES * budget_ns;
    assert_true(task_memory_is_late(&m));
    assert_true(m.late);
}

/* ---- threads of loops ---- */

static void wake(int signal)
{
    (void)signal;
}

/* Looks at the only thread of a process until it sleeps, and has done so since its count was read. */
static void look_asleep(struct loop_threads *l, pid_t pid)
{
    for (int i = 0; i < 5000; i++) {
        loop_threads_clear(l);
        loop_threads_add(l, (uint32_t)pid);
        loop_threads_look(l, (uint32_t)pid);
        if (l->threads[0].asleep && loop_threads_slept(l, l, (uint32_t)pid))
            return;
        usleep(1000);
    }
    fail_msg("the process does not go to sleep");
}

TEST(threads_that_slept)
{
    struct loop_threads before, later, own = {.count = 0};

    signal(SIGUSR1, wake);
    pid_t pid = fork();
    if (!pid) {
        for (;;)
            pause();
    }
    loop_threads_add(&own, (uint32_t)getpid());
    loop_threads_look(&own, (uint32_t)getpid());
    bool counted = own.threads[0].arrivals != 0; /* the kernel may not keep the counts */
    if (counted) {
        look_asleep(&before, pid);
        later = before;
        assert_true(loop_threads_slept(&before, &later, (uint32_t)pid));
        kill(pid, SIGUSR1);
        for (int i = 0; i < 5000 && loop_threads_slept(&before, &before, (uint32_t)pid); i++)
            usleep(1000);
        look_asleep(&later, pid); /* asleep again, but it has run */
        assert_false(loop_threads_slept(&before, &later, (uint32_t)pid));
        assert_true(loop_threads_slept(&later, &later, (uint32_t)pid));
        /* A thread that was not looked at before; one that runs; more than are kept. */
        assert_false(loop_threads_slept(&own, &later, (uint32_t)pid));
        assert_false(loop_threads_slept(&own, &own, (uint32_t)getpid()));
        for (uint32_t i = 0; i <= LOOP_THREADS_MAX; i++)
            loop_threads_add(&later, i + 1);
        assert_int_equal(later.count, LOOP_THREADS_MAX + 1);
        assert_false(loop_threads_slept(&later, &later, (uint32_t)pid));
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (!counted)
        skip();
}
