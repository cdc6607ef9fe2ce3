/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that get no signals: these are for the main thread, or for the one that waits for them. */
#ifndef CAPTURE_HOST_QUIET_THREAD_H
#define CAPTURE_HOST_QUIET_THREAD_H

#include <pthread.h>

/* As pthread_create(3), with all signals blocked in the new thread. 0 or an errno. */
int quiet_thread_start(pthread_t *thread, void *(*run)(void *), void *ctx);

#endif
