/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "formats/base/notify_socket.h"

/* A manager that does not listen is not told; nothing depends on it. */
static void tell(const struct service *s, const char *text)
{
    if (s->fd >= 0 && send(s->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        errno = 0;
}

void service_begin(struct service *s)
{
    const char *name = getenv("NOTIFY_SOCKET"), *watchdog = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

    *s = (struct service){.fd = name && *name ? notify_socket_open(name) : -1};
    if (watchdog && (!pid || strtol(pid, NULL, 10) == (long)getpid()))
        s->watchdog_ns = strtoull(watchdog, NULL, 10) * NS_PER_US / 2;
}

void service_ready(struct service *s)
{
    tell(s, "READY=1\nSTATUS=Waiting for traces.");
    s->told_ns = now_ns();
}

void service_tick(struct service *s, uint64_t traces_waiting)
{
    char text[80];

    if (s->fd < 0)
        return;
    if (s->watchdog_ns && now_ns() - s->told_ns >= s->watchdog_ns) {
        tell(s, "WATCHDOG=1");
        s->told_ns = now_ns();
    }
    if (traces_waiting == s->waiting)
        return;
    s->waiting = traces_waiting;
    snprintf(text, sizeof text, "STATUS=%" PRIu64 " trace%s not sent yet.", traces_waiting, traces_waiting == 1 ? "" : "s");
    tell(s, text);
}

void service_end(struct service *s)
{
    tell(s, "STOPPING=1");
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}
