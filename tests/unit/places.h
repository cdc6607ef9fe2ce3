/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the test itself in which children stop (stopped.h), reached in every way that matters to an unwinder. */
#ifndef TESTS_UNIT_PLACES_H
#define TESTS_UNIT_PLACES_H

#include "tests/unit/test.h"

#include <alloca.h>
#include <pthread.h>

#include "tests/unit/stopped.h"

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
