/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of C that unwinders find hard, for mix.py:
 *   cc -O2 -fPIC -shared -o libmix.so mix_native.c
 */
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define KEEP __attribute__((noinline, noclone))

typedef int callback(int n);

static volatile unsigned sink;

KEEP static void burn(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        sink += i * i;
}

static void on_alarm(int number)
{
    (void)number;
    burn(60000);
}

/* SIGALRM every 0.7 ms of time, its handler in C, on a stack of its own or not. */
int mix_handle_alarm(int own_stack)
{
    struct itimerval every = {{0, 700}, {0, 700}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | (own_stack ? SA_ONSTACK : 0)};

    if (own_stack) {
        stack_t stack = {.ss_size = 1 << 16, .ss_sp = malloc(1 << 16)};
        if (!stack.ss_sp || sigaltstack(&stack, NULL))
            return 1;
    }
    return sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &every, NULL);
}

/* A stack that is realigned: the CFA is found by way of another register or of memory. */
KEEP int mix_realign(callback *call, int n)
{
    struct {
        char bytes[64] __attribute__((aligned(64)));
    } wide;
    char *more = alloca((size_t)n * 8);
    int sum = 0;

    memset(&wide, n, sizeof wide);
    memset(more, n, (size_t)n * 8);
    for (int i = 0; i < 10; i++) {
        burn(2000);
        sum += call(n) + wide.bytes[i] + more[i];
    }
    return sum;
}

/* A frame of variable size. */
KEEP int mix_variable(callback *call, int n)
{
    int values[n], sum = 0;

    for (int i = 0; i < n; i++)
        values[i] = i;
    burn(20000);
    sum += call(n);
    for (int i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

/* Deep recursion. */
KEEP int mix_deep(callback *call, int n)
{
    char some[40];

    memset(some, n, sizeof some);
    burn(200);
    return (n ? mix_deep(call, n - 1) : call(3)) + some[n % 40];
}
