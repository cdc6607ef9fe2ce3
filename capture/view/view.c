/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view is started when the recorder has written the first bytes: until then it may fail, which is not for a screen to
 * show. The first process keeps the pipe's reading end, and empties the pipe when the view has gone, so that the recorder
 * ends like any other recording.
 */
#include "capture/view/view.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/host/messages.h"
#include "capture/session/session.h"
#include "capture/view/view_program.h"
#include "capture/view/view_terminal.h"
#include "formats/base/helper_process.h"
#include "formats/base/program.h"

/* What pycap says while the view has the screen is shown behind it, so much of it at most. */
#define HELD_BYTES_MAX (64 << 10)

/* How often what the recorder is at is shown, until the view has the screen. */
#define PROGRESS_MS 100

/* What became of the recording, in memory that the recorder shares with the first process. */
struct outcome {
    struct session_progress progress;
    bool ended, failed; /* by itself; with an error, which it has written */
    int exit_code;
};

enum child_state { NOT_STARTED, RUNS, ENDED };

struct child {
    pid_t pid;
    enum child_state state;
    int status; /* as waitpid() reports it */
};

struct view {
    const struct view_options *o;
    char *program;
    struct outcome *outcome;
    int pipe[2], signal_fd, held_fd; /* held_fd: a file in memory; -1: messages go to standard error */
    struct child recorder, shown;
    bool left; /* the view ended, or was told to by Ctrl-C, before the recording did */
    bool ending; /* the recorder was told to end: a second time it would not finish what it does */
    int killed_for; /* the signal after which the view could not end by itself; 0: none */
    pid_t pid; /* of the first process */
    sigset_t mask; /* that pycap was started with */
    struct view_terminal terminal;
};

static void close_open(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- the recorder ---- */

/* Nothing of the screen is left to the command: where its input and output are the terminal they become empty. */
static void leave_screen(int held_fd)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (isatty(STDIN_FILENO))
        dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(held_fd, STDERR_FILENO);
}

static _Noreturn void be_recorder(struct view *v)
{
    struct session_options o = *v->o->session;
    char output[32];
    int code = EXIT_FAILED;

    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &v->mask, NULL);
    close(v->pipe[0]);
    close(v->signal_fd);
    if (v->o->screen) {
        o.command_error_fd = helper_descriptor(isatty(STDERR_FILENO) ? open("/dev/null", O_WRONLY | O_CLOEXEC) : dup(STDERR_FILENO));
        leave_screen(v->held_fd);
    } else {
        signal(SIGTTOU, SIG_IGN); /* a terminal may stop those who write to it from another group than its own (stty tostop) */
    }
    snprintf(output, sizeof output, "/dev/fd/%d", v->pipe[1]);
    o.output = output;
    o.messages = stderr;
    o.progress = &v->outcome->progress;
    struct error *err = session_run(&o, &code);
    if (err)
        code = program_fail("pycap", err);
    v->outcome->failed = err;
    v->outcome->exit_code = code;
    v->outcome->ended = true;
    exit(code);
}

/* ---- before the view ---- */

/* On a line that the view's screen covers as soon as it is there, or what the view says in its place. */
static void show_progress(const struct view *v)
{
    const struct session_progress *p = &v->outcome->progress;
    char processes[64] = "the processes asked for";

    if (p->processes)
        snprintf(processes, sizeof processes, "%u process%s", p->processes, p->processes == 1 ? "" : "es");
    printf("\033[Kpycap: ");
    switch (atomic_load(&p->step)) {
    case STEP_BEGINS:
        printf("starting");
        break;
    case STEP_SOURCES:
        printf("loading the sampler and reading /proc");
        break;
    case STEP_BINARIES:
        printf("waiting for the binaries of %s to be read", processes);
        break;
    case STEP_SAMPLES:
        printf("waiting for the first samples");
        break;
    }
    putchar('\r');
    fflush(stdout);
}

static void clear_progress(void)
{
    printf("\r\033[K");
    fflush(stdout);
}

/* ---- the view ---- */

static _Noreturn void be_shown(struct view *v)
{
    sigprocmask(SIG_SETMASK, &v->mask, NULL);
    dup2(v->pipe[0], STDIN_FILENO);
    view_program_become(v->program, v->o->arguments, v->pid);
}

static struct error *start(struct view *v, struct child *c, void (*be)(struct view *))
{
    c->pid = fork();
    if (!c->pid)
        be(v);
    if (c->pid < 0)
        return error_os(errno, "a process cannot be started");
    c->state = RUNS;
    return NULL;
}

static void tell(const struct child *c, int number)
{
    if (c->state == RUNS)
        kill(c->pid, number);
}

/* ---- the first process ---- */

static void end_recorder(struct view *v)
{
    v->ending = true;
    tell(&v->recorder, SIGTERM);
}

/* What the view does not read any more. */
static void empty_pipe(struct view *v)
{
    char bytes[4096];

    if (read(v->pipe[0], bytes, sizeof bytes) == 0)
        close_open(&v->pipe[0]);
}

/* Takes signals that were sent to this process. */
static void take_signals(struct view *v)
{
    struct signalfd_siginfo info;

    while (read(v->signal_fd, &info, sizeof info) == sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == SIGCHLD || number == SIGTSTP || number == SIGUSR1) /* an event for other recordings */
            continue;
        bool typed = info.ssi_code == SI_KERNEL; /* it went to the view as well */
        v->left |= typed && number == SIGINT && v->o->screen && v->shown.state == RUNS && v->recorder.state == RUNS;
        if (!v->ending)
            v->killed_for = number;
        end_recorder(v);
        if (!typed)
            tell(&v->shown, number);
    }
}

/* The view is stopped, which is meant for the whole job as the shell sees it. The recorder goes on. */
static void stop(struct view *v)
{
    take_signals(v);
    if (v->ending) { /* in the background it is stopped again whenever it wants to put the terminal right, so that is done here */
        tell(&v->shown, SIGKILL);
        return;
    }
    raise(SIGSTOP);
    tell(&v->shown, SIGCONT);
}

static void child_changed(struct view *v, struct child *c, int status)
{
    if (WIFSTOPPED(status)) {
        if (c == &v->shown)
            stop(v);
        return;
    }
    c->state = ENDED;
    c->status = status;
    if (c == &v->shown) {
        v->left |= v->recorder.state == RUNS;
        view_terminal_restore(&v->terminal, WIFSIGNALED(status));
        if (!v->ending)
            end_recorder(v);
    }
}

static void reap(struct view *v)
{
    struct child *const children[] = {&v->recorder, &v->shown};
    int status;

    for (size_t i = 0; i < sizeof children / sizeof *children; i++) {
        while (children[i]->state == RUNS && waitpid(children[i]->pid, &status, WNOHANG | WUNTRACED) > 0)
            child_changed(v, children[i], status);
    }
}

/* Whether the pipe is to be looked at: for the first bytes, or to be emptied. */
static bool wants_pipe(const struct view *v)
{
    return v->pipe[0] >= 0 && v->shown.state != RUNS;
}

static struct error *take_pipe(struct view *v, short events)
{
    if (v->shown.state == ENDED || v->ending) /* or there is nobody any more who wants to see it */
        empty_pipe(v);
    else if (events & POLLIN && !v->outcome->failed)
        return start(v, &v->shown, be_shown);
    else
        close_open(&v->pipe[0]);
    return NULL;
}

static struct error *watch(struct view *v)
{
    bool shows = v->o->screen;

    if (shows)
        show_progress(v);
    while (v->recorder.state == RUNS || v->shown.state == RUNS || wants_pipe(v)) {
        struct pollfd fds[2] = {{.fd = v->signal_fd, .events = POLLIN}, {.fd = wants_pipe(v) ? v->pipe[0] : -1, .events = POLLIN}};
        int n = poll(fds, 2, shows ? PROGRESS_MS : -1);
        if (n < 0 && errno != EINTR)
            return error_os(errno, "the processes cannot be waited for");
        shows &= v->shown.state == NOT_STARTED && !v->ending;
        if (shows)
            show_progress(v);
        if (fds[0].revents) {
            take_signals(v);
            reap(v);
        } else if (fds[1].revents) {
            TRY(take_pipe(v, fds[1].revents));
        }
    }
    if (v->o->screen)
        clear_progress();
    return NULL;
}

/* ---- start and end ---- */

static struct error *set_up(struct view *v)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD, SIGTSTP, SIGUSR1};
    sigset_t set;

    v->pid = getpid();
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&set, numbers[i]);
    if (sigprocmask(SIG_BLOCK, &set, &v->mask))
        return error_os(errno, "signals cannot be blocked");
    TRY(view_program_find(&v->program));
    if (v->o->screen) {
        TRY(view_terminal_save(&v->terminal));
        v->held_fd = memfd_create("pycap messages", MFD_CLOEXEC);
        if (v->held_fd < 0)
            return error_os(errno, "a file in memory cannot be made");
    }
    v->outcome = mmap(NULL, sizeof *v->outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (v->outcome == MAP_FAILED || pipe2(v->pipe, O_CLOEXEC))
        return error_os(errno, "a pipe to pysym cannot be made");
    for (int i = 0; i < 2; i++)
        v->pipe[i] = helper_descriptor(v->pipe[i]);
    signal(SIGCHLD, SIG_DFL); /* where it is ignored a child's end cannot be waited for */
    if (v->pipe[0] < 0 || v->pipe[1] < 0)
        return error_os(errno, "a pipe to pysym cannot be made");
    v->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return v->signal_fd < 0 ? error_os(errno, "signals cannot be read") : NULL;
}

static void show_held(int fd)
{
    static char text[HELD_BYTES_MAX];
    ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text, 0);

    if (n > 0)
        fwrite(text, 1, (size_t)n, stderr);
}

/* By stop(). */
static bool is_killed(const struct view *v)
{
    return v->killed_for && WTERMSIG(v->shown.status) == SIGKILL;
}

static int exit_code(const struct view *v)
{
    const struct child *shown = &v->shown, *recorder = &v->recorder;

    if (shown->state == ENDED && WIFSIGNALED(shown->status))
        return 128 + (is_killed(v) ? v->killed_for : WTERMSIG(shown->status));
    if (shown->state == ENDED && WEXITSTATUS(shown->status))
        return WEXITSTATUS(shown->status);
    if (recorder->state == ENDED && !v->outcome->ended)
        return WIFSIGNALED(recorder->status) ? 128 + WTERMSIG(recorder->status) : WEXITSTATUS(recorder->status);
    return v->left && !v->outcome->failed ? EXIT_GOOD : v->outcome->exit_code;
}

static void say_ends(const struct view *v)
{
    int number = v->shown.state == ENDED && WIFSIGNALED(v->shown.status) ? WTERMSIG(v->shown.status) : 0;
    if (number && number != SIGINT && number != SIGPIPE && !is_killed(v)) /* the second one: whoever reads has enough */
        messages_line(stderr, "pysym was ended by signal %d (%s)", number, strsignal(number));
    if (v->recorder.state == ENDED && WIFSIGNALED(v->recorder.status))
        messages_line(stderr, "the recording was ended by signal %d (%s)", WTERMSIG(v->recorder.status),
                      strsignal(WTERMSIG(v->recorder.status)));
}

static void tear_down(struct view *v)
{
    close_open(&v->pipe[0]);
    close_open(&v->pipe[1]);
    close_open(&v->signal_fd);
    close_open(&v->held_fd);
    if (v->outcome && v->outcome != MAP_FAILED)
        munmap(v->outcome, sizeof *v->outcome);
    free(v->program);
}

struct error *view_run(const struct view_options *options, int *code)
{
    struct view v = {.o = options, .pipe = {-1, -1}, .signal_fd = -1, .held_fd = -1};
    struct error *err = set_up(&v);

    if (!err)
        err = start(&v, &v.recorder, be_recorder);
    close_open(&v.pipe[1]);
    if (!err)
        err = watch(&v);
    if (err) {
        tell(&v.recorder, SIGTERM);
        tell(&v.shown, SIGTERM);
    } else {
        show_held(v.held_fd);
        say_ends(&v);
        *code = exit_code(&v);
    }
    tear_down(&v);
    return err;
}
