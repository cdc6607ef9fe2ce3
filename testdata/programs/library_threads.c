/* SPDX-License-Identifier: Apache-2.0 */
/* A library that begins three threads of its own; library_threads.py. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static volatile unsigned long sink;

static void *calls(void *function)
{
    for (;; usleep(1000))
        ((void (*)(void))function)();
    return NULL;
}

static void *spins(void *nothing)
{
    for (;; usleep(1000)) {
        for (int i = 0; i < 100000; i++)
            sink++;
    }
    return nothing;
}

static void *named(void *nothing)
{
    pthread_setname_np(pthread_self(), "pool-own-name");
    return spins(nothing);
}

int begin(void (*function)(void))
{
    pthread_t thread;

    return pthread_create(&thread, NULL, calls, (void *)function) || pthread_create(&thread, NULL, spins, NULL) ||
           pthread_create(&thread, NULL, named, NULL);
}
