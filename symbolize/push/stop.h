/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals that end `pysym push`: SIGTERM and SIGINT, and SIGHUP unless it runs without a terminal. A request that is under
 * way gets a few seconds for its answer, since without one it would be repeated by the next run; a second signal ends it.
 */
#ifndef SYMBOLIZE_PUSH_STOP_H
#define SYMBOLIZE_PUSH_STOP_H

#include <stdbool.h>

#include "formats/base/err.h"
#include "symbolize/push/store.h"

/* Signals that are ignored stay so. */
struct error *stop_begin(void);
/* The request that ends when it takes too long after a signal is one of this store; NULL: none. */
void stop_watch(struct store *store);
bool stop_requested(void);
/* A descriptor that can be read when a signal has come. */
int stop_fd(void);

#endif
