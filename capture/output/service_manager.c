/* SPDX-License-Identifier: Apache-2.0 */
/* Orders are of fixed length, and shorter than what a pipe takes at once. */
#include "capture/output/service_manager.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "capture/host/messages.h"
#include "capture/host/privileges.h"
#include "capture/host/sandbox.h"
#include "capture/output/output_protocol.h"
#include "formats/base/helper_process.h"
#include "formats/base/landlock.h"
#include "formats/base/notify_socket.h"

struct service_manager {
    int pipe;     /* for writing; its end tells the helper to end */
    pid_t helper;
};

enum event { EVENT_READY = 1, EVENT_STOPPING };

struct order {
    uint32_t event;
    uint32_t processes;
};

/* ---- the helper ---- */

struct error *service_manager_confine(void)
{
    privileges_leave_root();
    privileges_drop_all();
    landlock_enter(NULL, 0);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return NULL; /* the sanitizers make calls of their own at the end */
#else
    return sandbox_enter_messenger();
#endif
}

/* A manager that does not listen any more is not told; nothing depends on it. */
static void tell(int fd, const struct order *o)
{
    char text[128];
    int len = 0;

    if (o->event == EVENT_READY)
        len = snprintf(text, sizeof text, "READY=1\nSTATUS=Recording; %" PRIu32 " Python process%s found at the start.",
                       o->processes, o->processes == 1 ? "" : "es");
    else if (o->event == EVENT_STOPPING)
        len = snprintf(text, sizeof text, "STOPPING=1\nSTATUS=Writing the end of the trace.");
    while (len && write(fd, text, (size_t)len) < 0 && errno == EINTR)
        ;
}

static void be_helper(const char *name, int pipe, bool confine, FILE *messages)
{
    int fd = notify_socket_open(name);
    const int keep[] = {pipe, fd};
    struct order o;

    if (fd < 0)
        messages_line(messages, "the service manager cannot be told that recording has begun: NOTIFY_SOCKET (%s): %s", name,
                      strerror(errno));
    helper_begin("pycap-notify", keep, sizeof keep / sizeof *keep);
    if (confine)
        error_destroy(service_manager_confine());
    while (output_read(pipe, &o, sizeof o)) {
        if (fd >= 0)
            tell(fd, &o);
    }
    _exit(0);
}

/* ---- who asks it ---- */

struct error *service_manager_create(bool confine, FILE *messages, struct service_manager **out)
{
    const char *name = getenv("NOTIFY_SOCKET");
    int ends[2] = {-1, -1};

    *out = NULL;
    if (!name || !*name)
        return NULL;
    struct service_manager *m = calloc(1, sizeof *m);
    if (!m)
        return error_no_memory();
    m->pipe = -1;
    if (!pipe2(ends, O_CLOEXEC)) {
        ends[0] = helper_descriptor(ends[0]);
        m->pipe = helper_descriptor(ends[1]);
    }
    m->helper = ends[0] < 0 || m->pipe < 0 ? -1 : fork();
    if (!m->helper)
        be_helper(name, ends[0], confine, messages);
    int why = errno;
    if (ends[0] >= 0)
        close(ends[0]);
    if (m->helper < 0) {
        service_manager_destroy(m);
        return error_os(why, "the process that talks to the service manager cannot be started");
    }
    *out = m;
    return NULL;
}

/* One that has gone cannot tell anybody; then nobody is told. */
static void order(struct service_manager *m, enum event event, uint32_t processes)
{
    const struct order o = {.event = event, .processes = processes};

    if (m)
        output_write(m->pipe, &o, sizeof o);
}

void service_manager_ready(struct service_manager *m, uint32_t processes)
{
    order(m, EVENT_READY, processes);
}

void service_manager_stopping(struct service_manager *m)
{
    order(m, EVENT_STOPPING, 0);
}

void service_manager_destroy(struct service_manager *m)
{
    if (!m)
        return;
    if (m->pipe >= 0)
        close(m->pipe);
    if (m->helper > 0)
        helper_wait(m->helper);
    free(m);
}
