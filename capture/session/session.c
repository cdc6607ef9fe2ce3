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

#define SIDEBAND_PAGES 128
#define NICE_FIRST (-20)
/* Without BPF each sample costs several system calls. */
#define PROC_HZ_MAX 10000

enum queued { QUEUED_MESSAGE, QUEUED_SIDEBAND };
const char *const record_unwind_names[] = {
    [UNWIND_TABLES] = "tables",
    [UNWIND_SNAPSHOT] = "snapshot",
    [UNWIND_BOTH] = "both",
    [UNWIND_FRAME_POINTERS] = "fp",
    [UNWIND_NO] = "none",
    NULL,
};

const char *const record_backend_names[] = {
    [BACKEND_AUTO] = "auto",
    [BACKEND_BPF] = "bpf",
    [BACKEND_PROC] = "proc",
    NULL,
};

/* ---- what comes in ---- */

static struct error *on_message(void *ctx, const void *message, uint32_t len)
{
    struct record *r = ctx;
    uint64_t time_ns;

    if (len >= sizeof(struct wire_sample) && ((const struct wire_sample *)message)->type == WIRE_SAMPLE)
        time_ns = ((const struct wire_sample *)message)->time_ns;
    else if (len >= sizeof(struct wire_code) && ((const struct wire_code *)message)->type == WIRE_CODE)
        time_ns = ((const struct wire_code *)message)->time_ns;
    else
        return error_create(ERROR_FORMAT, "the sampler sent a message of an unknown kind");
    return queue_add(r->queue, time_ns, QUEUED_MESSAGE, message, len);
}

static struct error *on_sideband(void *ctx, const struct sideband_event *event)
{
    struct record *r = ctx;
    /* The text is the last member: what is behind its end need not be copied. */
    uint32_t len = (uint32_t)(offsetof(struct sideband_event, text) + strlen(event->text) + 1);

    r->news_waiting++;
    return queue_add(r->queue, event->time_ns, QUEUED_SIDEBAND, event, len);
}

static struct error *on_queued(void *ctx, uint32_t kind, uint64_t time_ns, const void *data, uint32_t len)
{
    struct record *r = ctx;

    if (trace_writer_epoch_due(r->writer, time_ns))
        TRY(recorder_begin_epoch(r->recorder, time_ns));
    if (kind == QUEUED_SIDEBAND) {
        struct sideband_event event;
        memcpy(&event, data, len);
        r->news_waiting--;
        r->news_ns = time_ns;
        return processes_apply(r->processes, &event);
    }
    /* What the side-band has told goes to the sampler before time is spent on samples. */
    if (processes_unsettled(r->processes))
        TRY(processes_settle(r->processes, now_ns()));
    if (((const struct wire_sample *)data)->type == WIRE_SAMPLE)
        return recorder_sample(r->recorder, data, len);
    r->news_ns = time_ns;
    return recorder_code(r->recorder, data, len);
}

static struct error *on_proc_sample(void *ctx, const void *message, uint32_t len)
{
    /* At once, while the code objects are there. */
    return on_queued(ctx, QUEUED_MESSAGE, ((const struct wire_sample *)message)->time_ns, message, len);
}

struct error *capture_drain(struct record *r, uint64_t until_ns)
{
    if (r->proc)
        return proc_sampler_round(r->proc, on_proc_sample, r);
    TRY(sideband_drain(r->sideband, on_sideband, r));
    TRY(sampler_drain(r->sampler, on_message, r));
    TRY(queue_run(r->queue, until_ns, on_queued, r));
    if (r->tables)
        TRY(tables_poll(r->tables, now_ns()));
    return processes_settle(r->processes, now_ns());
}

static void flush(struct record *r, uint64_t time_ns)
{
    uint32_t cursor = 0;

    for (struct process *p; (p = processes_next(r->processes, &cursor));)
        perf_map_hold(p);
    capture_sum_losses(r);
    recorder_losses(r->recorder, time_ns, r->losses);
    trace_writer_flush(r->writer);
    r->flushed_ns = time_ns;
}

/* ---- setting up ---- */

/* Those asked for must be there and be something that can be recorded. */
static struct error *check_pids(struct record *r)
{
    const struct record_options *o = r->o;
    uint32_t usable = 0;
    struct error *last = NULL;

    for (uint32_t i = 0; i < o->pid_count; i++) {
        struct process *p = processes_find(r->processes, o->pids[i]);
        char version[32];
        struct error *err = r->proc ? proc_sampler_check(r->processes, o->pids[i]) : NULL;
        if (!err && !p)
            err = error_create(ERROR_NOT_FOUND, "there is no process %u", o->pids[i]);
        else if (!err && (o->any || !p->passes))
            usable++; /* what the filter lets through may come yet */
        else if (!err && !p->python)
            err = report_no_python(r, p);
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
static struct error *check_proc(const struct record_options *o)
{
    if (!o->command && !o->pid_count)
        return error_create(ERROR_USAGE, "without BPF only a command or named processes can be recorded: -- COMMAND or -p PID");
    if (strcmp(o->event, "cpu-clock") || o->any || o->cpus || o->filter)
        return error_create(ERROR_USAGE, "-e, -a, -C, --comm and --cgroup need BPF");
    if (o->frequency_hz > PROC_HZ_MAX)
        return error_create(ERROR_USAGE, "without BPF the rate is at most %u Hz", PROC_HZ_MAX);
    return NULL;
}

/*
 * pycap takes little time, but has to have it soon: where it waits for its turn behind hundreds the buffers fill. An own
 * nice value that somebody gave it stays.
 */
static struct error *go_first(const struct record *r)
{
    const struct record_options *o = r->o;

    if (o->has_nice && setpriority(PRIO_PROCESS, 0, o->nice))
        return error_os(errno, "--nice %d cannot be had: it takes CAP_SYS_NICE", o->nice);
    if (!o->has_nice && !r->context.nice && o->backend != BACKEND_PROC)
        setpriority(PRIO_PROCESS, 0, NICE_FIRST); /* without CAP_SYS_NICE it may be refused, and is said to be missing */
    return NULL;
}

/* From here on there is time. */
static void go_as_started(const struct record *r)
{
    if (!r->o->has_nice)
        setpriority(PRIO_PROCESS, 0, r->context.nice);
}

/* Opens the sampler; or says on what grounds it is done without, and leaves it NULL. */
static struct error *open_bpf(struct record *r, const struct sampler_options *options)
{
    const struct record_options *o = r->o;

    if (o->backend == BACKEND_PROC)
        return check_proc(o);
    struct error *err = host_check(&r->host);
    if (!err)
        err = sampler_open(options, &r->sampler);
    if (!err)
        err = sideband_open(r->host.cpus, r->host.cpu_count, SIDEBAND_PAGES, &r->sideband);
    if (!err) {
        r->missing = privileges_missing(&r->host);
        if (!o->quiet)
            privileges_print_missing(&r->host, "pycap: ", o->messages);
    }
    if (!err || o->backend == BACKEND_BPF || err->code == ERROR_USAGE || err->code == ERROR_NO_MEMORY)
        return err;
    struct error *why_not = check_proc(o);
    if (why_not) {
        error_destroy(why_not);
        return err;
    }
    sampler_close(r->sampler);
    r->sampler = NULL;
    go_as_started(r);
    const char *why = error_text(err);
    fprintf(o->messages, "pycap: only Python frames are recorded (--backend proc): %.*s\n", (int)strcspn(why, "\n"), why);
    error_destroy(err);
    return NULL;
}

static struct error *follow(struct record *r)
{
    const struct record_options *o = r->o;

    if (o->command)
        return proc_sampler_follow(r->proc, (uint32_t)r->command.pid, false);
    for (uint32_t i = 0; i < o->pid_count; i++)
        TRY(proc_sampler_follow(r->proc, o->pids[i], false));
    return NULL;
}

static struct error *set_up(struct record *r)
{
    const struct record_options *o = r->o;
    bool tables = o->unwind == UNWIND_TABLES || o->unwind == UNWIND_BOTH;
    bool snapshots = record_takes_snapshots(o);
    struct sigaction hangup;
    sigset_t signals;

    r->rotates = o->rotate_ns || o->rotate_bytes;
    TRY(files_check(o->output, r->rotates));
    TRY(host_read(&r->host));
    files_init(&r->files, &(struct files_options){o->output, r->host.hostname, r->rotates, o->keep});
    r->cpus = o->cpus ? o->cpus : r->host.cpus;
    r->cpu_count = o->cpus ? o->cpu_count : r->host.cpu_count;
    for (uint32_t i = 0; i < r->cpu_count; i++) {
        bool online = false;
        for (uint32_t k = 0; k < r->host.cpu_count; k++)
            online |= r->host.cpus[k] == r->cpus[i];
        if (!online)
            return error_create(ERROR_USAGE, "there is no CPU %d online", r->cpus[i]);
    }
    r->ticks = calloc(r->cpu_count, sizeof *r->ticks);
    r->file_ticks = calloc(r->cpu_count, sizeof *r->file_ticks);
    r->idle_ns = calloc(r->cpu_count, sizeof *r->idle_ns);
    if (!r->ticks || !r->file_ticks || !r->idle_ns)
        return error_no_memory();

    command_context_save(&r->context);
    TRY(go_first(r));
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaction(SIGHUP, NULL, &hangup);
    if (hangup.sa_handler != SIG_IGN || r->rotates) /* nohup means it */
        sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &signals, NULL))
        return error_os(errno, "signals cannot be blocked");
    signal(SIGPIPE, SIG_IGN);
    interrupt_init(o->command != NULL);
    signal(SIGCHLD, SIG_DFL); /* where it is ignored a child's end cannot be waited for */
    r->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r->signal_fd < 0)
        return error_os(errno, "signals cannot be read");

    TRY(modules_create(&r->modules));
    if (o->archive) {
        const struct bundle_options bundle = {
            .output = o->archive, .strip_code = o->strip_code, .quiet = o->quiet, .messages = o->messages};
        TRY(bundle_create(&bundle, &r->bundle)); /* what cannot be written is better known now */
    }
    struct sampler_options sampler = {
        .event = o->event,
        .frequency_hz = o->frequency_hz,
        .cpus = r->cpus,
        .cpu_count = r->cpu_count,
        .stack_bytes = tables || snapshots ? o->stack_bytes : 0,
        .every_stack = snapshots,
        .native = tables                                  ? WIRE_NATIVE_TABLES
                  : o->unwind == UNWIND_FRAME_POINTERS ? WIRE_NATIVE_FRAME_POINTERS
                                                       : WIRE_NATIVE_NONE,
        .all = o->any && !o->pid_count && !o->command && !o->filter,
        .table_bytes = o->table_bytes,
        .kernel = o->kernel,
        .python = true,
        .ring_bytes = o->ring_bytes,
        .timed = o->max_cpu > 0,
    };
    TRY(open_bpf(r, &sampler));
    bool by_proc = !r->sampler;
    tables = tables && !by_proc;
    snapshots = snapshots && !by_proc;
    if (tables) {
        struct tables_memory memory;
        sampler_tables(r->sampler, &memory);
        TRY(tables_create(&memory, &r->tables));
        TRY(late_unwind_create(r->tables, &r->late_unwind));
    }
    struct processes_options processes = {
        .tables = r->tables,
        .sampler = r->sampler,
        .all = !o->pid_count && !o->command,
        .follow = o->follow,
        .any = o->any,
        .filter = o->filter,
    };
    TRY(processes_create(&processes, r->modules, &r->processes));
    if (by_proc)
        TRY(proc_sampler_create(r->processes, o->frequency_hz, o->follow, &r->proc));
    TRY(codes_create(&r->codes));
    TRY(kallsyms_create(&r->kallsyms));
    /* Now, not when the first processes are waiting to be made known to the sampler. */
    if (r->sampler && o->kernel)
        TRY(kallsyms_load(r->kallsyms, now_ns()));
    TRY(queue_create(&r->queue));
    if (o->command)
        TRY(command_fork(o->command, &r->context, &r->command));
    if (o->archive)
        modules_hold(r->modules); /* raises a limit, which the command does not inherit */

    /* The side-band first: what starts while /proc is being read is told of by one or the other. */
    if (r->sideband)
        TRY(sideband_enable(r->sideband));
    uint32_t command_pid = (uint32_t)r->command.pid;
    if (by_proc)
        TRY(follow(r));
    else if (o->command)
        TRY(processes_scan(r->processes, &command_pid, 1));
    else
        TRY(processes_scan(r->processes, o->pids, o->pid_count));
    if (o->pid_count)
        TRY(check_pids(r));
    TRY(processes_settle(r->processes, now_ns()));

    TRY(capture_check_memory(r));
    r->start_ns = r->flushed_ns = r->status_ns = r->news_ns = r->forgotten_ns = now_ns();
    TRY(capture_open_file(r, r->start_ns));
    if (o->archive && files_are_one(o->archive, r->files.path)) /* by another path: the archive would replace it */
        return error_create(ERROR_USAGE, "%s cannot be the trace and the archive", o->archive);
    settings_of_options(o, by_proc, &r->settings);
    if (r->missing)
        settings_add(&r->settings, "without", r->missing);
    struct recorder_options recorder = {
        .writer = r->writer,
        .host = &r->host,
        .modules = r->modules,
        .processes = r->processes,
        .codes = r->codes,
        .kallsyms = r->kallsyms,
        .late_unwind = r->late_unwind,
        .snapshots = snapshots,
        .any = o->any,
        .all = !o->pid_count && !o->command,
        .cmdline = o->cmdline,
        .event = capture_event(r),
        .frequency_hz = o->frequency_hz,
        .settings = &r->settings,
    };
    TRY(recorder_create(&recorder, &r->recorder));
    struct processes_events events = recorder_process_events(r->recorder);
    processes_set_events(r->processes, &events);
    struct budget_use use = capture_use(r, r->start_ns);
    budget_init(&r->budget, &(struct budget_options){o->frequency_hz, o->max_cpu, o->max_bytes, o->max_memory}, &use);
    return recorder_begin_epoch(r->recorder, r->start_ns);
}

/* Everything is loaded, attached and open: what is not needed from here on is given up. */
static struct error *confine(struct record *r)
{
    struct privileges_need need = {
        .bpf_map_fd = r->sampler ? sampler_map_fd(r->sampler) : -1,
        .new_files = r->rotates || r->bundle,
        .command = r->o->command != NULL,
    };

    if (r->o->no_sandbox)
        return NULL;
    TRY(privileges_drop(&need));
#ifdef __SANITIZE_ADDRESS__
    return NULL; /* the leak checker forks, and traces, at the end */
#else
    return sandbox_enter(r->command.pid);
#endif
}

static void tear_down(struct record *r)
{
    recorder_destroy(r->recorder);
    trace_writer_destroy(r->writer);
    bundle_destroy(r->bundle);
    queue_destroy(r->queue);
    kallsyms_destroy(r->kallsyms);
    codes_destroy(r->codes);
    proc_sampler_destroy(r->proc);
    processes_destroy(r->processes);
    late_unwind_destroy(r->late_unwind);
    tables_destroy(r->tables);
    sideband_close(r->sideband);
    sampler_close(r->sampler);
    modules_destroy(r->modules);
    command_deinit(&r->command);
    free(r->ticks);
    free(r->idle_ns);
    if (r->command_fd >= 0)
        close(r->command_fd);
    files_deinit(&r->files);
    free(r->file_ticks);
    if (r->signal_fd >= 0)
        close(r->signal_fd);
    free(r->missing);
    host_deinit(&r->host);
}

/* ---- the loop ---- */

static void end_with(struct record *r, enum end_reason reason)
{
    if (!r->stop) {
        r->stop = true;
        r->reason = reason;
    }
    if (reason == END_SIGNAL)
        interrupt_tell();
}

static void read_signals(struct record *r)
{
    struct signalfd_siginfo info;

    while (read(r->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        if (info.ssi_signo == SIGHUP && r->rotates) {
            r->rotate_now = true;
            continue;
        }
        /* Ctrl-C at the terminal went to the command too: its end is still recorded. A second one is for us. */
        if (info.ssi_signo == SIGINT && info.ssi_code == SI_KERNEL && r->command.pid > 0 && !r->command.exited &&
            !r->stopping_command) {
            r->stopping_command = true;
            interrupt_command_told();
            continue;
        }
        end_with(r, END_SIGNAL);
    }
}

static bool any_pid_left(struct record *r)
{
    uint32_t cursor = 0;

    for (struct process *p; (p = processes_next(r->processes, &cursor));) {
        if (p->in_scope && !p->ended_ns)
            return true;
    }
    return false;
}

static struct error *loop(struct record *r)
{
    const struct record_options *o = r->o;
    const int *sideband_fd;
    uint32_t sideband_count = r->sideband ? sideband_fds(r->sideband, &sideband_fd) : 0;
    struct pollfd fds[4 + sideband_count];
    uint64_t last = now_ns();
    bool terminal = !o->quiet && isatty(fileno(o->messages));

    fds[0] = (struct pollfd){.fd = r->signal_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = r->command_fd, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = r->tables ? tables_fd(r->tables) : -1, .events = POLLIN};
    fds[3] = (struct pollfd){.fd = r->sampler ? sampler_wake_fd(r->sampler) : -1, .events = POLLIN};
    for (uint32_t i = 0; i < sideband_count; i++)
        fds[4 + i] = (struct pollfd){.fd = sideband_fd[i], .events = POLLIN};
    while (!r->stop) {
        uint64_t now = now_ns(), due = capture_due_ns(r, last, now, terminal);
        struct timespec wait = {0};
        if (due > now)
            wait = (struct timespec){.tv_sec = (time_t)((due - now) / SECOND), .tv_nsec = (long)((due - now) % SECOND)};
        if (ppoll(fds, 4 + sideband_count, &wait, NULL) < 0 && errno != EINTR)
            return error_os(errno, "waiting failed");
        now = now_ns();
        if (now < due && !fds[3].revents) {
            /* Woken by news: they settle, and those that come with them are gathered. */
            uint64_t until = last + capture_news_ns(r, now);
            if (until < now + SETTLE_NS)
                until = now + SETTLE_NS;
            struct timespec rest = {.tv_nsec = (long)(until - now)};
            nanosleep(&rest, NULL);
            now = now_ns();
        }
        if (fds[0].revents)
            read_signals(r);
        if (r->command.pid > 0 && command_poll(&r->command))
            end_with(r, END_COMMAND);
        if (o->duration_ns && now >= r->start_ns + o->duration_ns)
            end_with(r, END_DURATION);
        last = now;
        TRY(capture_drain(r, now - SETTLE_NS));
        if (now - r->flushed_ns >= FLUSH_NS) {
            TRY(processes_reap(r->processes, now));
            TRY(processes_rescan(r->processes, now));
            TRY(capture_limit_memory(r, now));
            flush(r, now);
            TRY(capture_keep_budget(r, now));
        }
        if (!r->stop && capture_rotation_due(r, now))
            TRY(capture_rotate(r, now - SETTLE_NS));
        if (interrupt_told())
            end_with(r, END_SIGNAL);
        if (trace_writer_full(r->writer))
            end_with(r, END_FULL);
        if (trace_writer_failed(r->writer)) {
            end_with(r, END_ERROR);
            return NULL;
        }
        if (o->pid_count && !any_pid_left(r))
            end_with(r, END_PROCESSES);
        if (terminal && now - r->status_ns >= STATUS_NS)
            report_status(r, now);
    }
    if (terminal)
        fprintf(o->messages, "\r\033[K");
    return NULL;
}

static struct error *finish(struct record *r)
{
    uint64_t end_ns;

    interrupt_allow(); /* from here on they are not read */
    if (r->sampler)
        TRY(sampler_disable(r->sampler));
    end_ns = now_ns();
    TRY(capture_drain(r, UINT64_MAX));
    struct error *err = capture_end_file(r, end_ns, r->reason);
    interrupt_allow();
    if (!r->o->quiet)
        report_summary(r, end_ns);
    if (!err && r->bundle) {
        go_as_started(r); /* to pack binaries takes long */
        err = archive_modules(r->bundle, r->modules, record_takes_snapshots(r->o));
    }
    return err;
}

struct error *record_run(const struct record_options *options, int *exit_code)
{
    struct record *r = calloc(1, sizeof *r);
    struct error *err;

    *exit_code = 0;
    if (!r)
        return error_no_memory();
    r->o = options;
    r->files.fd = r->signal_fd = r->command_fd = -1;
    r->command.go_fd = r->command.error_fd = -1;
    err = set_up(r);
    if (!err)
        err = confine(r);
    if (!err && r->sampler)
        err = sampler_enable(r->sampler);
    if (!err && options->command) {
        r->command_fd = (int)syscall(SYS_pidfd_open, r->command.pid, 0);
        err = command_go(&r->command, options->command[0]);
    }
    if (!err) {
        err = loop(r);
        if (!err)
            err = finish(r);
        if (err && r->writer) /* what has been captured stays, with an end that says so */
            error_destroy(capture_end_file(r, now_ns(), END_ERROR));
    }
    if (r->command.pid > 0 && r->command.go_fd < 0 && !r->command.exited) {
        /* We end before the command does: it is told, and its end is waited for. */
        interrupt_allow();
        kill(r->command.pid, SIGTERM);
        while (!command_poll(&r->command))
            poll(&(struct pollfd){.fd = r->command_fd, .events = POLLIN}, 1, 1000);
    }
    if (!err && r->command.exited)
        *exit_code = command_exit_code(&r->command);
    tear_down(r);
    free(r);
    return err;
}
