/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children that stop at a known place, under ptrace, for tests of unwinders. ptrace is
 * how a test looks at a process; the tools never do.
 */
#ifndef TESTS_UNIT_STOPPED_H
#define TESTS_UNIT_STOPPED_H

#include <alloca.h>
#include <pthread.h>
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
    assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL), 0);
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

/* Runs `place` in a child up to its STOP(). Returns the thread that stopped. */
static pid_t start(void (*place)(void), pid_t *pid)
{
    *pid = fork();
    assert_true(*pid >= 0);
    if (!*pid) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        place();
        _exit(0);
    }
    return run_to_stop(*pid);
}

/* ---- places to be stopped at ---- */

#define PLACE __attribute__((noinline, noclone, optimize("omit-frame-pointer"), no_sanitize("address", "undefined")))
/* Where a child ends: seen by the parent as SIGTRAP. */
#define STOP() __asm__ volatile("int3" ::: "memory")

static volatile int sink;

PLACE static void place_leaf(void)
{
    STOP();
    sink++;
}

PLACE static int place_recursion(int depth)
{
    volatile int local[7] = {depth};

    if (depth > 1)
        place_recursion(depth - 1);
    else
        place_leaf();
    return local[0] + sink++;
}

/* The stack pointer is no constant distance from the CFA: rules by RBP, or an expression. */
PLACE static int place_alloca(int len)
{
    volatile char *p = alloca((size_t)len);

    p[0] = 1;
    place_leaf();
    return p[0];
}

/* Realigned stack: GCC saves the old stack pointer, and the CFA is an expression over memory. */
PLACE static int place_aligned(int len)
{
    volatile char wide[64] __attribute__((aligned(64)));
    volatile char *p = alloca((size_t)len);

    wide[0] = 1, p[0] = 2;
    place_leaf();
    return wide[0] + p[0];
}

PLACE static void on_signal(int signal)
{
    (void)signal;
    place_leaf();
    sink++;
}

/* Interrupted by a signal at its first instruction, where the rules of the function before would be wrong. */
PLACE static int place_interrupted(void)
{
    __asm__ volatile("ud2");
    return sink++;
}

PLACE static void place_signal(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGILL, &action, NULL);
    place_interrupted();
    sink++;
}

static int compare_stopping(const void *a, const void *b)
{
    (void)a, (void)b;
    place_leaf();
    return 0;
}

/* Through code of libc. */
PLACE static void place_qsort(void)
{
    int values[2] = {1, 2};

    qsort(values, 2, sizeof values[0], compare_stopping);
    sink++;
}

static void *thread_main(void *arg)
{
    (void)arg;
    place_recursion(3);
    return NULL;
}

static void place_thread(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, thread_main, NULL);
    pthread_join(thread, NULL);
}

static void place_recursion_50(void)
{
    place_recursion(50);
}
static void place_alloca_1000(void)
{
    place_alloca(1000);
}
static void place_aligned_100(void)
{
    place_aligned(100);
}

#endif
