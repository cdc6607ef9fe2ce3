/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that stop at a known place, under ptrace, for tests of unwinders. ptrace is
 * how a test looks at a process; the tools never do.
 */
#ifndef TESTS_UNIT_STOPPED_H
#define TESTS_UNIT_STOPPED_H

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/base/err.h"

static void must(struct error *err)
{
    if (err)
        fail_msg("%s", error_text(err));
}

/* ---- a stopped process ---- */

static bool read_memory(pid_t pid, uint64_t address, void *out, size_t len_bytes)
{
    struct iovec local = {out, len_bytes}, remote = {(void *)(uintptr_t)address, len_bytes};

    return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)len_bytes;
}

/* In DWARF's order. */
static void read_registers(pid_t tid, uint64_t out[17])
{
    struct user_regs_struct r;

    assert_int_equal(ptrace(PTRACE_GETREGS, tid, NULL, &r), 0);
    const uint64_t values[17] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                                 r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
    memcpy(out, values, sizeof values);
}

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
static pid_t run_to_stop(pid_t pid)
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

/* Runs a program up to its STOP(). Returns the thread that stopped. */
__attribute__((unused)) static pid_t start_program(const char *path, const char *argument, pid_t *pid)
{
    *pid = fork();
    assert_true(*pid >= 0);
    if (!*pid) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        execl(path, path, argument, NULL);
        _exit(127);
    }
    return run_to_stop(*pid);
}

#endif
