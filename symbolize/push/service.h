/* SPDX-License-Identifier: Apache-2.0 */
/* Tells systemd how the pusher is (Type=notify, WatchdogSec=): sd_notify(3). */
#ifndef SYMBOLIZE_PUSH_SERVICE_H
#define SYMBOLIZE_PUSH_SERVICE_H

#include <stdint.h>

struct service {
    int fd;                /* -1: nobody wants to be told */
    uint64_t watchdog_ns;  /* how often it wants to be told; 0: never */
    uint64_t told_ns;      /* CLOCK_MONOTONIC */
    uint64_t waiting;      /* traces, as it was told last */
};

void service_begin(struct service *s);
void service_ready(struct service *s);
/* Call each second or so. */
void service_tick(struct service *s, uint64_t traces_waiting);
/* It ends; closes the connection. */
void service_end(struct service *s);

#endif
