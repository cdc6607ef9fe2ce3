/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each thing that is set up; session_set_up() is their order. */
#include "capture/session/session_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "capture/host/errand.h"
#include "capture/host/host_check.h"
#include "capture/host/messages.h"
#include "capture/host/privileges.h"
#include "capture/output/files.h"
#include "capture/output/interrupt.h"
#include "capture/session/advice.h"
#include "capture/session/flight.h"
#include "capture/session/session_budget.h"
#include "capture/session/session_drain.h"
#include "capture/session/session_files.h"
#include "capture/session/session_sources.h"

/* How long the recording waits for the inspection of the files that are mapped already. */
#define SETTLE_NS (500 * NS_PER_MS)
#define NICE_FIRST (-20)
/* The budget's rate where no event has one: periods become larger as it becomes smaller. */
#define PERIODS_RATE 1000000

/* Says and destroys an error that does not end the recording. Accepts NULL. */
static void tell(const struct session_options *o, struct error *err)
{
    if (err)
        messages_line(o->messages, "%s", error_text(err));
    error_destroy(err);
}

/* Those asked for must be there and be something that can be recorded: one at least. */
static struct error *check_pids(struct session *s)
{
    const struct session_options *o = s->o;
    uint32_t usable = 0;
    struct error *last = NULL;

    for (uint32_t i = 0; i < o->pid_count; i++) {
        struct process *p = processes_find(s->processes, o->pids[i]);
        struct error *err = s->proc ? proc_sampler_check(s->processes, o->pids[i]) : NULL;
        if (!err && !p)
            err = advice_no_process(s, o->pids[i]);
        else if (!err && (o->include_non_python || !p->passes || advice_may_be_python(s, p)))
            usable++; /* what the filter lets through may come yet */
        else if (!err && !p->python)
            err = advice_no_python(s, p);
        else if (!err && p->python->python.refused)
            err = advice_refused(s, p);
        else if (!err)
            usable++;
        if (err) {
            tell(o, last);
            last = err;
        }
    }
    if (!usable)
        return last;
    tell(o, last);
    return NULL;
}

/*
 * Where the kernel divides the CPUs among sessions first (sched_autogroup_enabled), a nice value counts within one alone. A session
 * that is pycap's own, as a service has one, has the value, too; others are in one that somebody's shell has made.
 */
static void bring_session_first(void)
{
    int fd = getsid(0) == getpid() ? open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    dprintf(fd, "%d", NICE_FIRST); /* where it is refused, so is pycap's own, which is said */
    close(fd);
}

/*
 * pycap takes little time, but has to have it soon: where it waits for its turn behind hundreds the buffers fill. An own
 * nice value that somebody gave it stays.
 */
static struct error *go_first(const struct session *s)
{
    const struct session_options *o = s->o;

    if (o->has_nice && setpriority(PRIO_PROCESS, 0, o->nice))
        return error_os(errno, "--nice %d was refused: it takes CAP_SYS_NICE", o->nice);
    if (!o->has_nice && !s->context.nice && o->backend != BACKEND_PROC) {
        setpriority(PRIO_PROCESS, 0, NICE_FIRST); /* without CAP_SYS_NICE it may be refused, and is said to be missing */
        if (!o->command)
            bring_session_first();
    }
    if (o->realtime && sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = (int)o->realtime}))
        return error_os(errno, "--realtime %" PRIu32 " was refused: it takes CAP_SYS_NICE", o->realtime);
    return NULL;
}

static struct error *set_up_files(struct session *s)
{
    const struct session_options *o = s->o;

    s->rotates = o->rotate_ns || o->rotate_bytes;
    TRY(files_check(o->output, s->rotates || o->on_demand));
    TRY(host_read(&s->host));
    s->cpus = o->cpus ? o->cpus : s->host.cpus;
    s->cpu_count = o->cpus ? o->cpu_count : s->host.cpu_count;
    for (uint32_t i = 0; i < s->cpu_count; i++) {
        bool online = false;
        for (uint32_t k = 0; k < s->host.cpu_count; k++)
            online |= s->host.cpus[k] == s->cpus[i];
        if (!online)
            return error_create(ERROR_USAGE, "there is no CPU %d online", s->cpus[i]);
    }
    s->events = o->events;
    s->ticks = calloc((size_t)s->cpu_count * s->events.count, sizeof *s->ticks);
    s->file_ticks = calloc((size_t)s->cpu_count * s->events.count, sizeof *s->file_ticks);
    s->settled = calloc((size_t)s->cpu_count * s->events.count, sizeof *s->settled);
    s->idle_ns = calloc(s->cpu_count, sizeof *s->idle_ns);
    if (!s->ticks || !s->file_ticks || !s->settled || !s->idle_ns)
        return error_no_memory();
    return flight_create(s);
}

/* While there is little to copy, and nobody has been read whom we do not trust. It is as prompt as we are. */
static struct error *set_up_writer(struct session *s)
{
    const struct session_options *o = s->o;
    const struct output_options options = {
        .files = {.pattern = o->output, .hostname = s->host.hostname, .rotates = s->rotates || o->on_demand, .keep = o->keep},
        .archive = o->archive,
        .group = o->group,
        .status = o->status,
        .confine = !o->no_sandbox,
    };

    return outputs_create(&options, &s->outputs);
}

/*
 * The command finds the file's path in its environment, as it gets pycap's own. Without the file it is recorded all the
 * same.
 */
static struct error *set_up_note(struct session *s)
{
    if (!s->o->command)
        return NULL;
    struct error *err = note_file_create(!s->o->no_sandbox, &s->note_file);
    if (err) {
        messages_line(s->o->messages, "%s", error_text(err));
        error_destroy(err);
        return NULL;
    }
    return setenv("PYCAP_NOTE", note_file_path(s->note_file), 1) ? error_no_memory() : NULL;
}

/* Where there is a command, it is the service, and says itself when it is ready: its environment has NOTIFY_SOCKET, too. */
static struct error *set_up_manager(struct session *s)
{
    return s->o->command ? NULL : service_manager_create(!s->o->no_sandbox, s->o->messages, &s->manager);
}

/* An event that is reported before pycap is ready waits until it is. To all that are called pycap it may be reported (pkill). */
static void hold_events(bool on_demand)
{
    sigset_t event;

    if (!on_demand) {
        signal(SIGUSR1, SIG_IGN);
        return;
    }
    sigemptyset(&event);
    sigaddset(&event, SIGUSR1);
    sigprocmask(SIG_BLOCK, &event, NULL);
}

static void give_up_all(void)
{
    privileges_leave_root();
    privileges_drop_all();
}

static struct error *set_up_signals(struct session *s)
{
    struct sigaction hangup;
    sigset_t signals;

    sigemptyset(&signals);
    sigaction(SIGHUP, NULL, &hangup);
    if (hangup.sa_handler != SIG_IGN || s->rotates) /* nohup means it */
        sigaddset(&signals, SIGHUP);
    if (s->flight)
        sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &signals, NULL))
        return error_os(errno, "signals cannot be blocked");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that grew to the limit of ulimit -f is an error of write() */
    signal(SIGCHLD, SIG_DFL); /* where it is ignored a child's end cannot be waited for */
    s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signal_fd < 0)
        return error_os(errno, "signals cannot be read");
    return interrupt_init(give_up_all, s->o->command != NULL);
}

static struct error *set_up_tables(struct session *s)
{
    struct tables_memory memory;

    if (!s->sampler || !session_takes_tables(s->o))
        return NULL;
    sampler_tables(s->sampler, &memory);
    TRY(tables_create(&memory, s->modules, &s->tables));
    return late_unwind_create(s->tables, &s->late_unwind);
}

static struct error *set_up_sleepers(struct session *s)
{
    const struct session_options *o = s->o;
    const struct sleepers_options options = {
        .sampler = s->sampler,
        .processes = s->processes,
        .waits = s->waits,
        .tables = s->tables,
        .native = s->tables || o->unwind == UNWIND_FRAME_POINTERS,
        .snapshot_bytes = session_takes_snapshots(o) ? o->stack_bytes : 0,
        .max_cpu = o->max_cpu,
        .at_once = o->at_once,
    };

    if (!s->sampler || event_list_wait(&s->events) == EVENT_NONE)
        return NULL;
    return sleepers_create(&options, &s->sleepers);
}

static struct error *set_up_tasks(struct session *s)
{
    uint32_t event = event_list_first(&s->events, EVENT_TASK);

    if (event == EVENT_NONE)
        return NULL;
    const struct task_looks_options options = {
        .processes = s->processes,
        .event = event,
        .period_ns = s->events.list[event].period,
        .max_cpu = s->o->max_cpu / 2,
        .put = session_queue_wait,
        .ctx = s,
    };
    return task_looks_create(&options, &s->tasks);
}

static struct error *set_up_when(struct session *s)
{
    const struct when_watch_options options = {.conditions = s->o->when, .processes = s->processes, .sampler = s->sampler};

    return s->o->when ? when_watch_create(&options, &s->when) : NULL;
}

/* What is known of code and the kernel; nothing is in it yet. */
static struct error *set_up_knowledge(struct session *s)
{
    const struct session_options *o = s->o;

    TRY(codes_create(&s->codes));
    TRY(source_table_create(&s->sources));
    TRY(kallsyms_create(&s->kallsyms));
    if (s->sampler && o->kernel) /* the sampler's programs are there, and get their names */
        kallsyms_begin(s->kallsyms, privileges_drop_all, now_ns());
    TRY(waits_create(session_queue_wait, s->sampler ? session_blame : NULL, s, &s->waits));
    TRY(set_up_sleepers(s));
    if (o->at_once)
        TRY(census_create(s->waits, &s->census));
    TRY(set_up_tasks(s));
    s->growth_event = s->sampler ? event_list_first(&s->events, EVENT_GROWTH) : EVENT_NONE;
    if (s->growth_event != EVENT_NONE)
        TRY(growth_create(session_growth, s, &s->growth));
    return queue_create(&s->queue);
}

/* Tells the sampler of those that were found and are to be sampled. */
static struct error *begin_sampling(struct session *s)
{
    modules_settle(s->modules, now_ns() + SETTLE_NS);
    TRY(processes_take_modules(s->processes));
    TRY(processes_decide(s->processes, now_ns()));
    if (s->sampler)
        TRY(processes_begin_sampling(s->processes, s->sampler, s->tables));
    if (s->o->pid_count)
        TRY(check_pids(s));
    advice_at_start(s);
    return processes_publish(s->processes, now_ns());
}

/* A file that cannot be where it is, by default in the working folder, may be in another place. Takes the error, which may be NULL. */
static struct error *say_elsewhere(struct error *err)
{
    if (!err || (err->os_errno != EROFS && err->os_errno != EACCES))
        return err;
    struct error *more = error_create(err->code, "%s; -o FILE puts the trace elsewhere, -o - into a pipe", error_text(err));
    error_destroy(err);
    return more;
}

static struct error *set_up_output(struct session *s)
{
    const struct session_options *o = s->o;

    s->start_ns = s->flushed_ns = s->status_ns = s->news_ns = s->forgotten_ns = now_ns();
    TRY(say_elsewhere(session_open_file(s, s->start_ns)));
    if (o->archive && outputs_path(s->outputs) && files_are_one(o->archive, outputs_path(s->outputs))) /* by another path: the archive would replace it */
        return error_create(ERROR_USAGE, "%s cannot be the trace and the archive", o->archive);
    TRY(settings_of_options(o, !s->sampler, &s->settings));
    if (s->missing)
        TRY(settings_add(&s->settings, "without", s->missing));
    return NULL;
}

static struct error *set_up_builder(struct session *s)
{
    const struct session_options *o = s->o;
    struct trace_builder_options builder = {
        .writer = s->writer,
        .host = &s->host,
        .modules = s->modules,
        .processes = s->processes,
        .codes = s->codes,
        .kallsyms = s->kallsyms,
        .sources = s->sources,
        .late_unwind = s->late_unwind,
        .snapshots = s->sampler && session_takes_snapshots(o),
        .include_non_python = o->include_non_python,
        .whole_host = !o->pid_count && !o->command,
        .cmdline = o->cmdline,
        .events = s->events,
        .settings = &s->settings,
    };
    TRY(trace_builder_create(&builder, &s->builder));
    struct processes_events events = trace_builder_process_events(s->builder);
    processes_set_events(s->processes, &events);
    return NULL;
}

static void set_step(const struct session *s, enum session_step step)
{
    struct session_progress *p = s->o->progress;

    if (!p)
        return;
    p->processes = s->processes ? (uint32_t)s->processes->live.count : 0;
    p->step = step;
}

struct error *session_set_up(struct session *s)
{
    const struct session_options *o = s->o;

    s->begun_ns = now_ns();
    command_context_save(&s->context);
    hold_events(o->on_demand);
    TRY(set_up_files(s));
    TRY(advice_check_pids(o));
    s->context.error_fd = o->command_error_fd;
    TRY(go_first(s));
    TRY(set_up_writer(s));
    TRY(set_up_note(s));
    TRY(set_up_manager(s));
    if (o->command) /* before there are threads, and helpers: those wait for the end of sockets that it would have, too, until it runs */
        TRY(command_fork(o->command, &s->context, &s->command));
    TRY(session_begin_helpers(s)); /* before anybody is read */
    TRY(set_up_signals(s));
    TRY(modules_create(&s->modules));
    if (o->archive) {
        const struct bundle_options bundle = {
            .output = o->archive, .strip_code = o->strip_code, .quiet = o->quiet, .messages = o->messages};
        struct archive_sink sink;
        TRY(outputs_open_archive(s->outputs, &sink));
        TRY(bundle_create(&bundle, &sink, &s->bundle)); /* what cannot be written is better known now */
    }
    modules_hold(s->modules, o->archive != NULL); /* raises a limit, which the command does not inherit */
    set_step(s, STEP_SOURCES);
    TRY(session_begin_sources(s));
    TRY(session_find_processes(s)); /* while the sampler is loaded */
    TRY(session_end_sources(s));
    set_step(s, STEP_BINARIES);
    TRY(set_up_tables(s));
    TRY(set_up_knowledge(s));
    TRY(begin_sampling(s));
    set_step(s, STEP_SAMPLES);
    TRY(session_check_memory(s));
    TRY(set_up_when(s));
    TRY(set_up_output(s));
    TRY(set_up_builder(s));
    struct budget_use use = session_use(s, s->start_ns);
    uint64_t rate = o->frequency_hz ? o->frequency_hz : PERIODS_RATE;
    budget_init(&s->budget, &(struct budget_options){rate, o->max_cpu, o->max_bytes, o->max_memory,
                                                     event_list_least(&o->events, rate)}, &use);
    TRY(trace_builder_begin_epoch(s->builder, s->start_ns));
    return flight_begin(s, s->start_ns);
}

void session_tear_down(struct session *s)
{
    command_deinit(&s->command); /* first: until it runs it has descriptors whose end helpers wait for */
    sampler_start_destroy(s->sampler_start);
    errand_end();
    table_maker_destroy(s->table_maker);
    trace_builder_destroy(s->builder);
    trace_writer_destroy(s->writer);
    bundle_destroy(s->bundle);
    flight_destroy(s);
    outputs_destroy(s->outputs);
    service_manager_destroy(s->manager);
    sleepers_destroy(s->sleepers);
    census_destroy(s->census);
    task_looks_destroy(s->tasks);
    waits_destroy(s->waits);
    when_watch_destroy(s->when);
    growth_destroy(s->growth);
    queue_destroy(s->queue);
    kallsyms_destroy(s->kallsyms);
    codes_destroy(s->codes);
    source_table_destroy(s->sources);
    proc_sampler_destroy(s->proc);
    processes_destroy(s->processes);
    late_unwind_destroy(s->late_unwind);
    tables_destroy(s->tables);
    sideband_close(s->sideband);
    sampler_close(s->sampler);
    modules_destroy(s->modules);
    note_file_destroy(s->note_file);
    free(s->ticks);
    free(s->settled);
    free(s->idle_ns);
    if (s->command_fd >= 0)
        close(s->command_fd);
    free(s->file_ticks);
    if (s->signal_fd >= 0)
        close(s->signal_fd);
    free(s->missing);
    settings_deinit(&s->settings);
    host_deinit(&s->host);
}
