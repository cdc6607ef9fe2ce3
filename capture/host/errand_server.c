/* SPDX-License-Identifier: Apache-2.0 */
/* Each helper is the server's child, and ends when the other end of its socket closes, or the server kills it. */
#include "capture/host/errand_server.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/host/sandbox.h"
#include "formats/base/clock.h"
#include "formats/base/helper_process.h"

/* How long the end of helpers is waited for, in milliseconds. */
#define END_MS 100

bool errand_order_send(int socket, const struct errand_order *o, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec bytes = {(void *)o, sizeof *o};
    struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1};
    ssize_t n;

    if (fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof control;
        struct cmsghdr *head = CMSG_FIRSTHDR(&m);
        *head = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    do
        n = sendmsg(socket, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == sizeof *o;
}

bool errand_order_receive(int socket, struct errand_order *o, int *fd)
{
    char control[CMSG_SPACE(sizeof *fd)];
    struct iovec bytes = {o, sizeof *o};
    struct msghdr m = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n;

    *fd = -1;
    do
        n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS && head->cmsg_len == CMSG_LEN(sizeof *fd))
        memcpy(fd, CMSG_DATA(head), sizeof *fd);
    return n == sizeof *o;
}

static _Noreturn void be_helper(int socket, struct errand_place *place)
{
    struct errand_order o;
    int given;

    uint64_t cpu_ns = 0;
    while (errand_order_receive(socket, &o, &given)) {
        int fd = given;
        atomic_store(&place->begun, true);
        o.run(place->bytes, o.size, &fd);
        int made = fd != given ? fd : -1;
        uint64_t now_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        atomic_fetch_add(&place->cpu_ns, now_cpu_ns - cpu_ns);
        cpu_ns = now_cpu_ns;
        o.kind = ERRAND_ORDER_DONE;
        bool told = errand_order_send(socket, &o, made);
        if (made >= 0)
            close(made);
        if (given >= 0)
            close(given);
        if (!told)
            break;
    }
    _exit(0);
}

static bool start_helper(int server_socket, uint32_t number, struct errand_place *place, pid_t *pid)
{
    struct errand_order done = {.kind = ERRAND_ORDER_DONE, .helper = number};
    int ends[2];

    *pid = -1;
    if (!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        *pid = fork();
    else
        ends[0] = ends[1] = -1;
    if (!*pid) {
        close(server_socket);
        close(ends[0]);
        be_helper(ends[1], place);
    }
    if (ends[1] >= 0)
        close(ends[1]);
    done.size = *pid > 0 ? (size_t)*pid : 0;
    bool told = errand_order_send(server_socket, &done, *pid > 0 ? ends[0] : -1);
    if (ends[0] >= 0)
        close(ends[0]);
    return told;
}

static void reap(pid_t pids[ERRAND_HELPERS])
{
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) {
        for (uint32_t i = 0; i < ERRAND_HELPERS; i++)
            pids[i] = pids[i] == pid ? 0 : pids[i];
    }
}

/* Those that go at once are waited for, so that they are gone when pycap is. */
static void kill_all(pid_t pids[ERRAND_HELPERS])
{
    for (uint32_t i = 0; i < ERRAND_HELPERS; i++) {
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
    }
    for (int i = 0; i < END_MS; i++) {
        bool any = false;
        reap(pids);
        for (uint32_t k = 0; k < ERRAND_HELPERS; k++)
            any |= pids[k] > 0;
        if (!any)
            return;
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
    }
}

_Noreturn void errand_serve(int socket, struct errand_place *places, void (*begin)(void), bool confine)
{
    pid_t pids[ERRAND_HELPERS] = {0};
    struct errand_order o;
    int none;

    helper_begin("pycap-errand", &socket, 1);
    signal(SIGCHLD, SIG_DFL);
    if (begin)
        begin();
    if (confine && sandbox_enter_errands())
        _exit(1);
    while (errand_order_receive(socket, &o, &none) && o.helper < ERRAND_HELPERS) {
        reap(pids);
        if (o.kind == ERRAND_ORDER_START && !start_helper(socket, o.helper, &places[o.helper], &pids[o.helper]))
            break;
        if (o.kind == ERRAND_ORDER_KILL && pids[o.helper] > 0)
            kill(pids[o.helper], SIGKILL);
    }
    kill_all(pids);
    _exit(0);
}
