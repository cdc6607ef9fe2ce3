/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the service manager that started pycap (systemd, Type=notify) when it records and when it ends: sd_notify(3), the
 * protocol of NOTIFY_SOCKET.
 *
 * The process that reads others opens no socket. A helper does it (pycap-notify in lists of processes), forked before
 * anything is read: it connects to that one socket, gives up everything else, and then knows two messages, which it is asked
 * for over a pipe. Their texts are its own.
 */
#ifndef CAPTURE_OUTPUT_SERVICE_MANAGER_H
#define CAPTURE_OUTPUT_SERVICE_MANAGER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"

struct service_manager;

/*
 * Forks the helper: call it before there are threads and large allocations. SIGPIPE must be ignored when anything else is
 * called. Nobody may be there to be told: then `out` gets NULL, which all of these accept. A socket that cannot be reached is
 * a line in `messages`, and no error. `confine`: the helper gives up what it does not need.
 */
struct error *service_manager_create(bool confine, FILE *messages, struct service_manager **out);
/* Samples are taken from now on, and so many Python processes are known. */
void service_manager_ready(struct service_manager *m, uint32_t processes);
/* The recording has ended; its end is being written. */
void service_manager_stopping(struct service_manager *m);
/* What the helper does to itself: it can then write to what it has open, and open nothing. */
struct error *service_manager_confine(void);
/* Lets the helper end, once it has sent what it was asked for. */
void service_manager_destroy(struct service_manager *m);

#endif
