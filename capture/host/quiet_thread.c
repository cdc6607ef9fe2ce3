/* SPDX-License-Identifier: Apache-2.0 */
/* A thread begins with the signal mask of the one that creates it. */
#include "capture/host/quiet_thread.h"

#include <signal.h>
#include <stddef.h>

int quiet_thread_start(pthread_t *thread, void *(*run)(void *), void *ctx)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int e = pthread_create(thread, NULL, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return e;
}
