/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/archive/archive.h"
#include "capture/session/interrupt.h"
#include "capture/host/privileges.h"
#include "capture/session/session_state.h"
#include "capture/session/sandbox.h"
#include "formats/cpython/version.h"

#define SIDEBAND_PAGES 128
#define NICE_FIRST (-20)
/* Without BPF each sample costs several system calls. */
#define PROC_HZ_MAX 10000

enum queued { QUEUED_MESSAGE, QUEUED_SIDEBAND };

/* ---- what comes in ---- */

static struct error *on_message(void *ctx, const void *message, uint32_t len)
{
    struct session *s = ctx;
    uint64_t time_ns;

    if (len >= sizeof(struct wire_sample) && ((const struct wire_sample *)message)->type == WIRE_SAMPLE)
        time_ns = ((const struct wire_sample *)message)->time_ns;
    else if (len >= sizeof(struct wire_code) && ((const struct wire_code *)message)->type == WIRE_CODE)
        time_ns = ((const struct wire_code *)message)->time_ns;
    else
        return error_create(ERROR_FORMAT, "the sampler sent a message of an unknown kind");
    return queue_add(s->queue, time_ns, QUEUED_MESSAGE, message, len);
}

static struct error *on_sideband(void *ctx, const struct sideband_event *event)
{
    struct session *s = ctx;
    /* The text is the last member: what is behind its end need not be copied. */
    uint32_t len = (uint32_t)(offsetof(struct sideband_event, text) + strlen(event->text) + 1);

    s->news_waiting++;
    return queue_add(s->queue, event->time_ns, QUEUED_SIDEBAND, event, len);
}

static struct error *on_queued(void *ctx, uint32_t kind, uint64_t time_ns, const void *data, uint32_t len)
{
    struct session *s = ctx;

    if (trace_writer_epoch_due(s->writer, time_ns))
        TRY(trace_builder_begin_epoch(s->builder, time_ns));
    if (kind == QUEUED_SIDEBAND) {
        struct sideband_event event;
        memcpy(&event, data, len);
        s->news_waiting--;
        s->news_ns = time_ns;
        return processes_apply(s->processes, &event);
    }
    /* What the side-band has told goes to the sampler before time is spent on samples. */
    if (processes_need_publishing(s->processes))
        TRY(processes_publish(s->processes, now_ns()));
    if (((const struct wire_sample *)data)->type == WIRE_SAMPLE)
        return trace_builder_sample(s->builder, data, len);
    s->news_ns = time_ns;
    return trace_builder_code(s->builder, data, len);
}

static struct error *on_proc_sample(void *ctx, const void *message, uint32_t len)
{
    /* At once, while the code objects are there. */
    return on_queued(ctx, QUEUED_MESSAGE, ((const struct wire_sample *)message)->time_ns, message, len);
}

struct error *session_drain(struct session *s, uint64_t until_ns)
{
    if (s->proc)
        return proc_sampler_round(s->proc, on_proc_sample, s);
    TRY(sideband_drain(s->sideband, on_sideband, s));
    TRY(sampler_drain(s->sampler, on_message, s));
    TRY(queue_run(s->queue, until_ns, on_queued, s));
    if (s->tables)
        TRY(tables_poll(s->tables, now_ns()));
    return processes_publish(s->processes, now_ns());
}

static void flush(struct session *s, uint64_t time_ns)
{
    trace_builder_hold_perf_maps(s->builder);
    session_sum_losses(s);
    trace_builder_losses(s->builder, time_ns, s->losses);
    trace_writer_flush(s->writer);
    s->flushed_ns = time_ns;
}

/* ---- setting up ---- */

/* Those asked for must be there and be something that can be recorded. */
static struct error *check_pids(struct session *s)
{
    const struct session_options *o = s->o;
    uint32_t usable = 0;
    struct error *last = NULL;

    for (uint32_t i = 0; i < o->pid_count; i++) {
        struct process *p = processes_find(s->processes, o->pids[i]);
        char version[32];
        struct error *err = s->proc ? proc_sampler_check(s->processes, o->pids[i]) : NULL;
        if (!err && !p)
            err = error_create(ERROR_NOT_FOUND, "there is no process %u", o->pids[i]);
        else if (!err && (o->include_non_python || !p->passes))
            usable++; /* what the filter lets through may come yet */
        else if (!err && !p->python)
            err = report_no_python(s, p);
        else if (!err && p->python->python.refused)
            err = error_create(ERROR_UNSUPPORTED, "process %u (%s, %s): %s", o->pids[i], p->comm,
                               py_version_text(p->python->python.version_hex, version), p->python->python.refused);
        else if (!err)
            usable++;
        if (err) {
            if (o->pid_count > 1)
                fprintf(o->messages, "pycap: %s\n", error_text(err));
            error_destroy(last);
            last = err;
        }
    }
    if (usable) {
        error_destroy(last);
        return NULL;
    }
    return last;
}

/* Why these options are not for the backend without BPF; NULL: they are. */
static struct error *check_proc(const struct session_options *o)
{
    if (!o->command && !o->pid_count)
        return error_create(ERROR_USAGE, "without BPF only a command or named processes can be recorded: -- COMMAND or -p PID");
    if (strcmp(o->event, "cpu-clock") || o->include_non_python || o->cpus || o->filter)
        return error_create(ERROR_USAGE, "-e, -a, -C, --comm and --cgroup need BPF");
    if (o->frequency_hz > PROC_HZ_MAX)
        return error_create(ERROR_USAGE, "without BPF the rate is at most %u Hz", PROC_HZ_MAX);
    return NULL;
}

/*
 * pycap takes little time, but has to have it soon: where it waits for its turn behind hundreds the buffers fill. An own
 * nice value that somebody gave it stays.
 */
static struct error *go_first(const struct session *s)
{
    const struct session_options *o = s->o;

    if (o->has_nice && setpriority(PRIO_PROCESS, 0, o->nice))
        return error_os(errno, "--nice %d cannot be had: it takes CAP_SYS_NICE", o->nice);
    if (!o->has_nice && !s->context.nice && o->backend != BACKEND_PROC)
        setpriority(PRIO_PROCESS, 0, NICE_FIRST); /* without CAP_SYS_NICE it may be refused, and is said to be missing */
    return NULL;
}

/* From here on there is time. */
static void go_as_started(const struct session *s)
{
    if (!s->o->has_nice)
        setpriority(PRIO_PROCESS, 0, s->context.nice);
}

/* Opens the sampler; or says on what grounds it is done without, and leaves it NULL. */
static struct error *open_bpf(struct session *s, const struct sampler_options *options)
{
    const struct session_options *o = s->o;

    if (o->backend == BACKEND_PROC)
        return check_proc(o);
    struct error *err = host_check(&s->host);
    if (!err)
        err = sampler_open(options, &s->sampler);
    if (!err)
        err = sideband_open(s->host.cpus, s->host.cpu_count, SIDEBAND_PAGES, &s->sideband);
    if (!err) {
        s->missing = privileges_missing(&s->host);
        if (!o->quiet)
            privileges_print_missing(&s->host, "pycap: ", o->messages);
    }
    if (!err || o->backend == BACKEND_BPF || err->code == ERROR_USAGE || err->code == ERROR_NO_MEMORY)
        return err;
    struct error *why_not = check_proc(o);
    if (why_not) {
        error_destroy(why_not);
        return err;
    }
    sampler_close(s->sampler);
    s->sampler = NULL;
    go_as_started(s);
    const char *why = error_text(err);
    fprintf(o->messages, "pycap: only Python frames are recorded (--backend proc): %.*s\n", (int)strcspn(why, "\n"), why);
    error_destroy(err);
    return NULL;
}

static struct error *follow(struct session *s)
{
    const struct session_options *o = s->o;

    if (o->command)
        return proc_sampler_follow(s->proc, (uint32_t)s->command.pid, false);
    for (uint32_t i = 0; i < o->pid_count; i++)
        TRY(proc_sampler_follow(s->proc, o->pids[i], false));
    return NULL;
}

static struct error *set_up(struct session *s)
{
    const struct session_options *o = s->o;
    bool tables = o->unwind == UNWIND_TABLES || o->unwind == UNWIND_BOTH;
    bool snapshots = session_takes_snapshots(o);
    struct sigaction hangup;
    sigset_t signals;

    s->rotates = o->rotate_ns || o->rotate_bytes;
    TRY(files_check(o->output, s->rotates));
    TRY(host_read(&s->host));
    files_init(&s->files, &(struct files_options){o->output, s->host.hostname, s->rotates, o->keep});
    s->cpus = o->cpus ? o->cpus : s->host.cpus;
    s->cpu_count = o->cpus ? o->cpu_count : s->host.cpu_count;
    for (uint32_t i = 0; i < s->cpu_count; i++) {
        bool online = false;
        for (uint32_t k = 0; k < s->host.cpu_count; k++)
            online |= s->host.cpus[k] == s->cpus[i];
        if (!online)
            return error_create(ERROR_USAGE, "there is no CPU %d online", s->cpus[i]);
    }
    s->ticks = calloc(s->cpu_count, sizeof *s->ticks);
    s->file_ticks = calloc(s->cpu_count, sizeof *s->file_ticks);
    s->idle_ns = calloc(s->cpu_count, sizeof *s->idle_ns);
    if (!s->ticks || !s->file_ticks || !s->idle_ns)
        return error_no_memory();

    command_context_save(&s->context);
    TRY(go_first(s));
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaction(SIGHUP, NULL, &hangup);
    if (hangup.sa_handler != SIG_IGN || s->rotates) /* nohup means it */
        sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &signals, NULL))
        return error_os(errno, "signals cannot be blocked");
    signal(SIGPIPE, SIG_IGN);
    interrupt_init(o->command != NULL);
    signal(SIGCHLD, SIG_DFL); /* where it is ignored a child's end cannot be waited for */
    s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signal_fd < 0)
        return error_os(errno, "signals cannot be read");

    TRY(modules_create(&s->modules));
    if (o->archive) {
        const struct bundle_options bundle = {
            .output = o->archive, .strip_code = o->strip_code, .quiet = o->quiet, .messages = o->messages};
        TRY(bundle_create(&bundle, &s->bundle)); /* what cannot be written is better known now */
    }
    struct sampler_options sampler = {
        .event = o->event,
        .frequency_hz = o->frequency_hz,
        .cpus = s->cpus,
        .cpu_count = s->cpu_count,
        .stack_bytes = tables || snapshots ? o->stack_bytes : 0,
        .every_stack = snapshots,
        .native = tables                                  ? WIRE_NATIVE_TABLES
                  : o->unwind == UNWIND_FRAME_POINTERS ? WIRE_NATIVE_FRAME_POINTERS
                                                       : WIRE_NATIVE_NONE,
        .unconfigured = o->include_non_python && !o->pid_count && !o->command && !o->filter,
        .table_bytes = o->table_bytes,
        .kernel = o->kernel,
        .python = true,
        .ring_bytes = o->ring_bytes,
        .timed = o->max_cpu > 0,
    };
    TRY(open_bpf(s, &sampler));
    bool by_proc = !s->sampler;
    tables = tables && !by_proc;
    snapshots = snapshots && !by_proc;
    if (tables) {
        struct tables_memory memory;
        sampler_tables(s->sampler, &memory);
        TRY(tables_create(&memory, &s->tables));
        TRY(late_unwind_create(s->tables, &s->late_unwind));
    }
    struct processes_options processes = {
        .tables = s->tables,
        .sampler = s->sampler,
        .whole_host = !o->pid_count && !o->command,
        .follow = o->follow,
        .include_non_python = o->include_non_python,
        .filter = o->filter,
    };
    TRY(processes_create(&processes, s->modules, &s->processes));
    if (by_proc)
        TRY(proc_sampler_create(s->processes, o->frequency_hz, o->follow, &s->proc));
    TRY(codes_create(&s->codes));
    TRY(kallsyms_create(&s->kallsyms));
    /* Now, not when the first processes are waiting to be made known to the sampler. */
    if (s->sampler && o->kernel)
        TRY(kallsyms_load(s->kallsyms, now_ns()));
    TRY(queue_create(&s->queue));
    if (o->command)
        TRY(command_fork(o->command, &s->context, &s->command));
    if (o->archive)
        modules_hold(s->modules); /* raises a limit, which the command does not inherit */

    /* The side-band first: what starts while /proc is being read is told of by one or the other. */
    if (s->sideband)
        TRY(sideband_enable(s->sideband));
    uint32_t command_pid = (uint32_t)s->command.pid;
    if (by_proc)
        TRY(follow(s));
    else if (o->command)
        TRY(processes_scan(s->processes, &command_pid, 1));
    else
        TRY(processes_scan(s->processes, o->pids, o->pid_count));
    if (o->pid_count)
        TRY(check_pids(s));
    TRY(processes_publish(s->processes, now_ns()));

    TRY(session_check_memory(s));
    s->start_ns = s->flushed_ns = s->status_ns = s->news_ns = s->forgotten_ns = now_ns();
    TRY(session_open_file(s, s->start_ns));
    if (o->archive && files_are_one(o->archive, s->files.path)) /* by another path: the archive would replace it */
        return error_create(ERROR_USAGE, "%s cannot be the trace and the archive", o->archive);
    TRY(settings_of_options(o, by_proc, &s->settings));
    if (s->missing)
        TRY(settings_add(&s->settings, "without", s->missing));
    struct trace_builder_options builder = {
        .writer = s->writer,
        .host = &s->host,
        .modules = s->modules,
        .processes = s->processes,
        .codes = s->codes,
        .kallsyms = s->kallsyms,
        .late_unwind = s->late_unwind,
        .snapshots = snapshots,
        .include_non_python = o->include_non_python,
        .whole_host = !o->pid_count && !o->command,
        .cmdline = o->cmdline,
        .event = session_event(s),
        .frequency_hz = o->frequency_hz,
        .settings = &s->settings,
    };
    TRY(trace_builder_create(&builder, &s->builder));
    struct processes_events events = trace_builder_process_events(s->builder);
    processes_set_events(s->processes, &events);
    struct budget_use use = session_use(s, s->start_ns);
    budget_init(&s->budget, &(struct budget_options){o->frequency_hz, o->max_cpu, o->max_bytes, o->max_memory}, &use);
    return trace_builder_begin_epoch(s->builder, s->start_ns);
}

/* Everything is loaded, attached and open: what is not needed from here on is given up. */
static struct error *confine(struct session *s)
{
    struct privileges_need need = {
        .bpf_map_fd = s->sampler ? sampler_map_fd(s->sampler) : -1,
        .new_files = s->rotates || s->bundle,
        .command = s->o->command != NULL,
    };

    if (s->o->no_sandbox)
        return NULL;
    TRY(privileges_drop(&need));
#ifdef __SANITIZE_ADDRESS__
    return NULL; /* the leak checker forks, and traces, at the end */
#else
    return sandbox_enter(s->command.pid);
#endif
}

static void tear_down(struct session *s)
{
    trace_builder_destroy(s->builder);
    trace_writer_destroy(s->writer);
    bundle_destroy(s->bundle);
    queue_destroy(s->queue);
    kallsyms_destroy(s->kallsyms);
    codes_destroy(s->codes);
    proc_sampler_destroy(s->proc);
    processes_destroy(s->processes);
    late_unwind_destroy(s->late_unwind);
    tables_destroy(s->tables);
    sideband_close(s->sideband);
    sampler_close(s->sampler);
    modules_destroy(s->modules);
    command_deinit(&s->command);
    free(s->ticks);
    free(s->idle_ns);
    if (s->command_fd >= 0)
        close(s->command_fd);
    files_deinit(&s->files);
    free(s->file_ticks);
    if (s->signal_fd >= 0)
        close(s->signal_fd);
    free(s->missing);
    settings_deinit(&s->settings);
    host_deinit(&s->host);
}

/* ---- the loop ---- */

static void end_with(struct session *s, enum end_reason reason)
{
    if (!s->stop) {
        s->stop = true;
        s->reason = reason;
    }
    if (reason == END_SIGNAL)
        interrupt_tell();
}

static void read_signals(struct session *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        if (info.ssi_signo == SIGHUP && s->rotates) {
            s->rotate_now = true;
            continue;
        }
        /* Ctrl-C at the terminal went to the command too: its end is still recorded. A second one is for us. */
        if (info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL && s->command.pid > 0 && !s->command.exited &&
            !s->stopping_command) {
            s->stopping_command = true;
            interrupt_command_told();
            continue;
        }
        end_with(s, END_SIGNAL);
    }
}

static bool any_pid_left(struct session *s)
{
    uint32_t cursor = 0;

    for (struct process *p; (p = processes_next(s->processes, &cursor));) {
        if (p->in_scope && !p->ended_ns)
            return true;
    }
    return false;
}

static struct error *loop(struct session *s)
{
    const struct session_options *o = s->o;
    const int *sideband_fd;
    uint32_t sideband_count = s->sideband ? sideband_fds(s->sideband, &sideband_fd) : 0;
    struct pollfd fds[4 + sideband_count];
    uint64_t last = now_ns();
    bool terminal = !o->quiet && isatty(fileno(o->messages));

    fds[0] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = s->command_fd, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = s->tables ? tables_fd(s->tables) : -1, .events = POLLIN};
    fds[3] = (struct pollfd){.fd = s->sampler ? sampler_wake_fd(s->sampler) : -1, .events = POLLIN};
    for (uint32_t i = 0; i < sideband_count; i++)
        fds[4 + i] = (struct pollfd){.fd = sideband_fd[i], .events = POLLIN};
    while (!s->stop) {
        uint64_t now = now_ns(), due = session_due_ns(s, last, now, terminal);
        struct timespec wait = {0};
        if (due > now)
            wait = timespec_of_ns(due - now);
        if (ppoll(fds, 4 + sideband_count, &wait, NULL) < 0 && errno != EINTR)
            return error_os(errno, "waiting failed");
        now = now_ns();
        if (now < due && !fds[3].revents) {
            /* Woken by news: they settle, and those that come with them are gathered. */
            uint64_t until = last + session_news_ns(s, now);
            if (until < now + EVENT_DELAY_NS)
                until = now + EVENT_DELAY_NS;
            struct timespec rest = {.tv_nsec = (long)(until - now)};
            nanosleep(&rest, NULL);
            now = now_ns();
        }
        if (fds[0].revents)
            read_signals(s);
        if (s->command.pid > 0 && command_poll(&s->command))
            end_with(s, END_COMMAND);
        if (o->duration_ns && now >= s->start_ns + o->duration_ns)
            end_with(s, END_DURATION);
        last = now;
        TRY(session_drain(s, now - EVENT_DELAY_NS));
        if (now - s->flushed_ns >= FLUSH_NS) {
            TRY(processes_reap(s->processes, now));
            TRY(processes_rescan(s->processes, now));
            TRY(session_limit_memory(s, now));
            flush(s, now);
            TRY(session_keep_budget(s, now));
        }
        if (!s->stop && session_rotation_due(s, now))
            TRY(session_rotate(s, now - EVENT_DELAY_NS));
        if (interrupt_told())
            end_with(s, END_SIGNAL);
        if (trace_writer_full(s->writer))
            end_with(s, END_FULL);
        if (trace_writer_failed(s->writer)) {
            end_with(s, END_ERROR);
            return NULL;
        }
        if (o->pid_count && !any_pid_left(s))
            end_with(s, END_PROCESSES);
        if (terminal && now - s->status_ns >= STATUS_NS)
            report_status(s, now);
    }
    if (terminal)
        fprintf(o->messages, "\r\033[K");
    return NULL;
}

static enum module_use module_use(void *builder, const struct module *m)
{
    return trace_builder_module_use(builder, m);
}

static struct error *finish(struct session *s)
{
    uint64_t end_ns;

    interrupt_allow(); /* from here on they are not read */
    if (s->sampler)
        TRY(sampler_disable(s->sampler));
    end_ns = now_ns();
    TRY(session_drain(s, UINT64_MAX));
    struct error *err = session_end_file(s, end_ns, s->reason);
    interrupt_allow();
    if (!s->o->quiet)
        report_summary(s, end_ns);
    if (!err && s->bundle) {
        go_as_started(s); /* to pack binaries takes long */
        err = archive_modules(s->bundle, s->modules, session_takes_snapshots(s->o), module_use, s->builder);
    }
    return err;
}

struct error *session_run(const struct session_options *options, int *exit_code)
{
    struct session *s = calloc(1, sizeof *s);
    struct error *err;

    *exit_code = 0;
    if (!s)
        return error_no_memory();
    s->o = options;
    s->files.fd = s->signal_fd = s->command_fd = -1;
    s->command.go_fd = s->command.error_fd = -1;
    err = set_up(s);
    if (!err)
        err = confine(s);
    if (!err && s->sampler)
        err = sampler_enable(s->sampler);
    if (!err && options->command) {
        s->command_fd = (int)syscall(SYS_pidfd_open, s->command.pid, 0);
        err = command_go(&s->command, options->command[0]);
    }
    if (!err) {
        err = loop(s);
        if (!err)
            err = finish(s);
        if (err && s->writer) /* what has been captured stays, with an end that says so */
            error_destroy(session_end_file(s, now_ns(), END_ERROR));
    }
    if (s->command.pid > 0 && s->command.go_fd < 0 && !s->command.exited) {
        /* We end before the command does: it is told, and its end is waited for. */
        interrupt_allow();
        kill(s->command.pid, SIGTERM);
        while (!command_poll(&s->command))
            poll(&(struct pollfd){.fd = s->command_fd, .events = POLLIN}, 1, 1000);
    }
    if (!err && s->command.exited)
        *exit_code = command_exit_code(&s->command);
    tear_down(s);
    free(s);
    return err;
}
