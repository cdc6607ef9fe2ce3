/* SPDX-License-Identifier: Apache-2.0 */
/* Waits without BPF: a thread's time by the kernel's counts, and what it waits for by its state and system call. */
#include "tests/unit/test.h"

#include <stdlib.h>
#include <string.h>

#include "capture/proc/task_time.h"
#include "capture/proc/task_wait.h"

static void check(const struct task_time *t, uint64_t run_ns, uint64_t queued_ns, uint64_t asleep_ns, uint64_t owed_ns)
{
    assert_int_equal(t->run_ns, run_ns);
    assert_int_equal(t->queued_ns, queued_ns);
    assert_int_equal(t->asleep_ns, asleep_ns);
    assert_int_equal(t->asleep_owed_ns, owed_ns);
    assert_int_equal(t->since_ns + run_ns + queued_ns + asleep_ns, t->until_ns);
}

TEST(times)
{
    struct task_time t = {0};
    struct task_schedstat now = {1000, 500, 7};

    task_time_look(&t, &now, 100); /* what was before is not accounted for */
    check(&t, 0, 0, 0, 0);
    assert_false(task_time_ran(&t, &now));
    now = (struct task_schedstat){1030, 510, 9};
    assert_true(task_time_ran(&t, &now));
    task_time_look(&t, &now, 200);
    check(&t, 30, 10, 60, 60);
    assert_int_equal(t.arrivals, 2);
    assert_int_equal(t.queue_owed_ns, 10);
    t.asleep_owed_ns = 0; /* a sample stands for it; from here on the wait is one that lasts */
    task_time_sleeps(&t, 300);
    task_time_sleeps(&t, 250);
    check(&t, 30, 10, 160, 0);
}

/* The counts may be late, and then tell of more than has passed: nothing is counted twice, nor below zero. */
TEST(late_counts)
{
    struct task_time t = {0};

    task_time_look(&t, &(struct task_schedstat){0}, 100);
    task_time_sleeps(&t, 110);
    task_time_look(&t, &(struct task_schedstat){25, 0, 1}, 120);
    check(&t, 25, 0, 10, 0);
    assert_int_equal(t.until_ns, 135);
    task_time_look(&t, &(struct task_schedstat){25, 0, 1}, 130);
    check(&t, 25, 0, 10, 0);
    task_time_look(&t, &(struct task_schedstat){20, 0, 0}, 140); /* smaller ones are of no use */
    check(&t, 25, 0, 15, 5);
}

static void check_wait(char state, const char *text, enum wire_wait_kind kind, int call, uint64_t futex)
{
    struct task_wait wait = task_wait_of(state, text);

    assert_int_equal(wait.kind, kind);
    assert_int_equal(wait.system_call, call);
    assert_int_equal(wait.futex, futex);
}

TEST(waits)
{
    check_wait('S', "202 0x7f0000001000 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd0 0x7f1\n", WIRE_WAIT_LOCK, 202, 0x7f0000001000);
    check_wait('S', "455 0x10 0x1\n", WIRE_WAIT_LOCK, 455, 0x10);
    check_wait('S', "449 0x7f0000001000 0x2\n", WIRE_WAIT_LOCK, 449, 0); /* a list of futexes */
    check_wait('S', "0 0x3 0x7f0000001000\n", WIRE_WAIT_BLOCKED, 0, 0);
    check_wait('D', "202 0x10\n", WIRE_WAIT_UNINTERRUPTIBLE, 202, 0x10);
    check_wait('D', "-1 0x7ffd0 0x7f1\n", WIRE_WAIT_UNINTERRUPTIBLE, WIRE_NO_SYSTEM_CALL, 0);
    check_wait('T', "-1 0x7ffd0 0x7f1\n", WIRE_WAIT_STOPPED, WIRE_NO_SYSTEM_CALL, 0);
    check_wait('t', NULL, WIRE_WAIT_STOPPED, WIRE_NO_SYSTEM_CALL, 0);
    check_wait('S', NULL, WIRE_WAIT_BLOCKED, WIRE_NO_SYSTEM_CALL, 0); /* it may not be read */
    check_wait('R', "running\n", WIRE_WAIT_NONE, WIRE_NO_SYSTEM_CALL, 0);
    check_wait('Z', "", WIRE_WAIT_NONE, WIRE_NO_SYSTEM_CALL, 0);
    check_wait('S', "99999999999999999999 0x10\n", WIRE_WAIT_BLOCKED, WIRE_NO_SYSTEM_CALL, 0);
    check_wait('S', "202", WIRE_WAIT_LOCK, 202, 0);
}

/* A piece of memory at 0x1000. */
static int read_memory(void *ctx, void *out, uint32_t len, uint64_t address)
{
    if (address < 0x1000 || address + len > 0x1000 + 64)
        return 1;
    memcpy(out, (uint8_t *)ctx + (address - 0x1000), len);
    return 0;
}

TEST(gil)
{
    uint64_t memory[8] = {[2] = 0x5000};
    struct python_reader *r = calloc(1, sizeof *r);
    struct wire_process *p = &r->walk.config.process;

    assert_non_null(r);
    r->walk.memory = (struct walk_memory){.read = read_memory, .ctx = memory};
    assert_false(task_wait_is_for_gil(r, 0x4000, 0x1000)); /* not known where it lies */
    *p = (struct wire_process){.gil_kind = PY_GIL_RANGE, .gil = 0x4000, .gil_len = 0x20};
    assert_true(task_wait_is_for_gil(r, 0x4000, 0) && task_wait_is_for_gil(r, 0x401f, 0));
    assert_false(task_wait_is_for_gil(r, 0x3fff, 0) || task_wait_is_for_gil(r, 0x4020, 0) || task_wait_is_for_gil(r, 0, 0));
    *p = (struct wire_process){.gil_kind = PY_GIL_INTERPRETER, .gil = 0x10, .gil_skip = 8, .gil_len = 0x20};
    assert_true(task_wait_is_for_gil(r, 0x5008, 0x1000));
    assert_false(task_wait_is_for_gil(r, 0x5007, 0x1000) || task_wait_is_for_gil(r, 0x5008, 0) ||
                 task_wait_is_for_gil(r, 0x5008, 0x9000) || task_wait_is_for_gil(r, 8, 0x1008));
    *p = (struct wire_process){.gil_kind = PY_GIL_POINTER, .gil = 0x1010, .gil_len = 0x20};
    assert_true(task_wait_is_for_gil(r, 0x5000, 0));
    free(r);
}
