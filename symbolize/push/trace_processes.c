/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process of a trace ends with the one that forked it, by the signal that it asks the kernel for, and with the sender,
 * by the end of its pipe. It can fork nothing that would outlive it, unless it is root.
 */
#include "symbolize/push/trace_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "formats/base/helper_process.h"
#include "formats/base/landlock.h"
#include "formats/base/no_sockets.h"
#include "formats/trace/ending.h"
#include "symbolize/push/message.h"
#include "symbolize/push/secrets.h"

struct server {
    int control;
    pid_t first; /* this process */
    converter_run *run;
    void *own;
    pid_t children[TRACE_PROCESSES_MAX]; /* by the order's number; 0: none */
    sigset_t signals; /* that were blocked before */
};

/* ---- the process of a trace ---- */

/* Of the processes of a host this one is the cheapest to lose when memory runs out: its trace is read again. */
static void be_killed_first(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (write(fd, "1000", 4) < 0)
        errno = 0; /* then the kernel chooses as it likes */
    close(fd);
}

static void limit_process(void)
{
    static const struct rlimit nothing = {0, 0};

    setrlimit(RLIMIT_CORE, &nothing); /* a core would hold the trace, and there may be many */
#ifndef __SANITIZE_ADDRESS__
    setrlimit(RLIMIT_NPROC, &nothing);
#endif
    be_killed_first();
}

/* Looking for an END record needs nothing but the descriptor that is open. */
static struct error *do_task(const struct server *s, enum converter_task task, const struct converter_trace *trace,
                             const struct profile_pipe *pipe, struct converter_message *last)
{
    if (task == CONVERTER_READ)
        TRY(s->run(s->own, trace, pipe, &last->damaged));
    else
        landlock_enter(NULL, 0);
    return trace_has_end(trace->fd, trace->path, &last->ended);
}

static _Noreturn void be_trace_process(const struct server *s, const struct trace_order *order, int fd, int pipe_fd)
{
    const struct converter_trace trace = {order->path, fd};
    const struct profile_pipe pipe = {pipe_fd};
    const int keep[] = {fd, pipe_fd};
    struct converter_message last = {.event = CONVERTER_END};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != s->first)
        _exit(EXIT_FAILURE);
    helper_begin("pysym-trace", keep, sizeof keep / sizeof *keep);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &s->signals, NULL);
    limit_process();
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    no_sockets_enter(); /* where the kernel cannot, it is as confined as pysym is */
    struct error *err = do_task(s, order->task, &trace, &pipe, &last);
    if (err) {
        last.event = CONVERTER_FAILED;
        last.text = error_text(err);
    }
    _exit(message_write(&pipe, &last) ? EXIT_FAILURE : EXIT_SUCCESS);
}

/* ---- the process that forks them ---- */

static void answer(struct server *s, uint32_t number, int fork_errno, int status)
{
    const struct trace_answer a = {number, fork_errno, status};

    s->children[number] = 0;
    if (send(s->control, &a, sizeof a, MSG_NOSIGNAL) < 0)
        _exit(EXIT_SUCCESS); /* the sender is gone */
}

static void begin(struct server *s, const struct trace_order *order, const int fds[TRACE_ORDER_FDS])
{
    pid_t child = fork();

    if (!child)
        be_trace_process(s, order, fds[0], fds[1]);
    s->children[order->number] = child;
    if (child < 0)
        answer(s, order->number, errno, 0);
}

/* The descriptors that came with an order; -1: none did. */
static void take_fds(struct msghdr *m, int fds[TRACE_ORDER_FDS])
{
    for (size_t i = 0; i < TRACE_ORDER_FDS; i++)
        fds[i] = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(fds, CMSG_DATA(c), TRACE_ORDER_FDS * sizeof *fds);
    }
}

/* False: the sender is gone. */
static bool take_order(struct server *s)
{
    static struct trace_order order;
    union {
        char bytes[CMSG_SPACE(TRACE_ORDER_FDS * sizeof(int))];
        struct cmsghdr align;
    } rights;
    struct iovec data = {&order, sizeof order};
    struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &rights, .msg_controllen = sizeof rights};
    int fds[TRACE_ORDER_FDS];

    ssize_t n = recvmsg(s->control, &m, MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR)
        return true;
    if (n != (ssize_t)sizeof order || order.number >= TRACE_PROCESSES_MAX)
        return false;
    take_fds(&m, fds);
    if (order.kind == TRACE_ORDER_BEGIN)
        begin(s, &order, fds);
    else if (s->children[order.number] > 0)
        kill(s->children[order.number], SIGKILL);
    for (size_t i = 0; i < TRACE_ORDER_FDS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    return true;
}

/* Answers for those that are gone. */
static void reap(struct server *s)
{
    int status;

    for (uint32_t i = 0; i < TRACE_PROCESSES_MAX; i++) {
        if (s->children[i] > 0 && waitpid(s->children[i], &status, WNOHANG) == s->children[i])
            answer(s, i, 0, status);
    }
}

static void end_all(struct server *s)
{
    for (uint32_t i = 0; i < TRACE_PROCESSES_MAX; i++) {
        if (s->children[i] > 0)
            kill(s->children[i], SIGKILL);
    }
    while (wait(NULL) > 0)
        ;
}

static void wake(int number)
{
    (void)number; /* it interrupts ppoll() */
}

void trace_processes_serve(int control, converter_run *run, void *own)
{
    struct server s = {.control = control, .first = getpid(), .run = run, .own = own};
    const struct sigaction act = {.sa_handler = wake};
    sigset_t waiting;

    secrets_forget_environment();
    helper_begin("pysym-forker", &control, 1);
    sigemptyset(&waiting);
    sigaddset(&waiting, SIGCHLD);
    sigprocmask(SIG_BLOCK, &waiting, &s.signals);
    sigdelset(&s.signals, SIGCHLD);
    sigaction(SIGCHLD, &act, NULL);
    for (bool more = true; more;) {
        struct pollfd p = {.fd = control, .events = POLLIN};
        if (ppoll(&p, 1, NULL, &s.signals) > 0)
            more = take_order(&s);
        reap(&s);
    }
    end_all(&s);
    _exit(EXIT_SUCCESS);
}
