/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that stop at a known place, under ptrace, for tests of unwinders. ptrace is
 * how a test looks at a process; the tools never do.
 */
#ifndef TESTS_UNIT_STOPPED_H
#define TESTS_UNIT_STOPPED_H

#include "tests/unit/test.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/base/err.h"

static pid_t running; /* also when an assertion left the test */

/* The teardown of tests that start children. */
static int stop_running(void **state)
{
    (void)state;
    if (running) {
        kill(running, SIGKILL);
        while (waitpid(-1, NULL, __WALL) > 0)
            ;
    }
    running = 0;
    return 0;
}

/* Lets a traced child run up to its STOP(). Returns the thread that stopped. */
static inline pid_t run_to_stop(pid_t pid)
{
    int status;

    running = pid;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL), 0);
    pid_t tid = pid;
    int deliver = 0;
    for (;;) {
        assert_int_equal(ptrace(PTRACE_CONT, tid, NULL, deliver), 0);
        tid = waitpid(-1, &status, __WALL);
        assert_true(tid > 0 && WIFSTOPPED(status));
        bool event = status >> 16;
        deliver = event || WSTOPSIG(status) == SIGSTOP ? 0 : WSTOPSIG(status);
        if (!event && deliver == SIGTRAP)
            return tid;
    }
}

/* One instruction. False where the thread has ended, or something other than the step stopped it. */
static bool step_once(pid_t tid)
{
    int status;

    assert_int_equal(ptrace(PTRACE_SINGLESTEP, tid, NULL, 0), 0);
    return waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
}

#endif
