/* SPDX-License-Identifier: Apache-2.0 */
/* A pipe holds the child until it may exec; another tells whether that failed. */
#include "capture/session/command.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const int changed[COMMAND_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGPIPE, SIGXFSZ, SIGUSR1};
enum { EVENT_SIGNAL = COMMAND_SIGNALS - 1 }; /* in `changed`: an event for all that are called pycap */

void command_context_save(struct command_context *s)
{
    s->nice = getpriority(PRIO_PROCESS, 0);
    s->policy = sched_getscheduler(0);
    sched_getparam(0, &s->priority);
    getrlimit(RLIMIT_NOFILE, &s->files);
    sigprocmask(SIG_SETMASK, NULL, &s->mask);
    for (int i = 0; i < COMMAND_SIGNALS; i++)
        sigaction(changed[i], NULL, &s->actions[i]);
}

/* But SIGUSR1 is ignored: until it execs, the child is named pycap, too, and `pkill -USR1 pycap` would hit it. */
static void restore(const struct command_context *s)
{
    signal(changed[EVENT_SIGNAL], SIG_IGN);
    for (int i = 0; i < EVENT_SIGNAL; i++)
        sigaction(changed[i], &s->actions[i], NULL);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
    sched_setscheduler(0, s->policy, &s->priority);
    setpriority(PRIO_PROCESS, 0, s->nice);
    setrlimit(RLIMIT_NOFILE, &s->files);
    if (s->error_fd)
        dup2(s->error_fd, STDERR_FILENO);
}

struct error *command_fork(char *const argv[], const struct command_context *context, struct command *c)
{
    int go[2], fail[2];

    *c = (struct command){.go_fd = -1, .error_fd = -1};
    if (pipe2(go, O_CLOEXEC))
        return error_os(errno, "a pipe to the command cannot be made");
    if (pipe2(fail, O_CLOEXEC)) {
        int e = errno;
        close(go[0]);
        close(go[1]);
        return error_os(e, "a pipe to the command cannot be made");
    }
    c->pid = fork();
    if (c->pid < 0) {
        int e = errno;
        close(go[0]);
        close(go[1]);
        close(fail[0]);
        close(fail[1]);
        return error_os(e, "the command cannot be started");
    }
    if (!c->pid) {
        char byte;
        close(go[1]);
        close(fail[0]);
        restore(context);
        if (read(go[0], &byte, 1) != 1)
            _exit(125); /* pycap has gone */
        sigaction(changed[EVENT_SIGNAL], &context->actions[EVENT_SIGNAL], NULL);
        execvp(argv[0], argv);
        int e = errno;
        if (write(fail[1], &e, sizeof e) < 0)
            _exit(126);
        _exit(127);
    }
    close(go[0]);
    close(fail[1]);
    c->go_fd = go[1];
    c->error_fd = fail[0];
    return NULL;
}

struct error *command_go(struct command *c, const char *name, uint64_t time_ns)
{
    int e = 0;
    ssize_t n;

    c->started_ns = time_ns;
    if (write(c->go_fd, "", 1) != 1)
        return error_os(errno, "the command cannot be told to start");
    close(c->go_fd);
    c->go_fd = -1;
    /* Nothing comes when the exec succeeds: it closes the pipe. */
    while ((n = read(c->error_fd, &e, sizeof e)) < 0 && errno == EINTR) {
    }
    close(c->error_fd);
    c->error_fd = -1;
    if (n == sizeof e) {
        waitpid(c->pid, &c->status, 0);
        c->exited = true;
        return error_file(e, name, "cannot be executed");
    }
    return NULL;
}

static uint64_t ns_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000;
}

bool command_has_ended(const struct command *c)
{
    siginfo_t info = {0};

    return c->exited || (!waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == c->pid);
}

bool command_poll(struct command *c, uint64_t time_ns)
{
    struct rusage usage;

    if (!c->exited && c->pid > 0 && wait4(c->pid, &c->status, WNOHANG, &usage) == c->pid) {
        c->exited = true;
        c->wall_ns = time_ns - c->started_ns;
        c->cpu_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
    }
    return c->exited;
}

int command_exit_code(const struct command *c)
{
    return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

void command_deinit(struct command *c)
{
    if (c->pid > 0 && c->go_fd >= 0 && !c->exited) {
        close(c->go_fd); /* it sees the end of the pipe and goes */
        waitpid(c->pid, &c->status, 0);
        c->exited = true;
    } else if (c->go_fd >= 0) {
        close(c->go_fd);
    }
    if (c->error_fd >= 0)
        close(c->error_fd);
    c->go_fd = c->error_fd = -1;
}
