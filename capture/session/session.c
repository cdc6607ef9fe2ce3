/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: wait, drain, and once a second what is due; around it the start and the end. */
#include "capture/session/session.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/archive/archive.h"
#include "capture/host/errand.h"
#include "capture/host/messages.h"
#include "capture/host/privileges.h"
#include "capture/output/interrupt.h"
#include "capture/session/advice.h"
#include "capture/session/flight.h"
#include "capture/session/report.h"
#include "capture/host/sandbox.h"
#include "capture/session/session_accounts.h"
#include "capture/session/session_budget.h"
#include "capture/session/session_drain.h"
#include "capture/session/session_files.h"
#include "capture/session/session_reader.h"
#include "capture/session/session_setup.h"
#include "capture/session/session_sources.h"
#include "capture/session/session_wait.h"
#include "capture/session/status_file.h"
#include "capture/session/thread_states.h"
#include "capture/trace/trace_losses.h"
#include "capture/trace/trace_memory.h"
#include "capture/trace/trace_titles.h"

static void flush(struct session *s, uint64_t time_ns)
{
    trace_builder_hold_perf_maps(s->builder);
    trace_titles_read(s->builder, time_ns, false);
    trace_builder_refusals(s->builder, time_ns);
    session_sum_losses(s);
    trace_builder_losses(s->builder, time_ns, s->losses, s->event_losses);
    trace_writer_flush(s->writer);
    /*
     * For a reader that follows, a block of its own says until when all is written: samples stand at the end of a block. Also
     * where nothing happens; so it is known soon, too, when the reader has gone.
     */
    if (session_has_reader(s)) {
        trace_builder_clock(s->builder);
        trace_writer_flush(s->writer);
    }
    s->flushed_ns = time_ns;
}

/* Everything is loaded, attached and open: what is not needed from here on is given up. */
static struct error *confine(struct session *s)
{
    struct privileges_need need = {
        .bpf_map_fd = s->sampler ? sampler_map_fd(s->sampler) : -1,
        .command = s->o->command != NULL,
    };

    bool left_root;

    if (s->o->no_sandbox)
        return NULL;
    TRY(privileges_drop(&need, &left_root));
    if (!left_root && !s->o->quiet)
        messages_line(s->o->messages, "stays user 0 while it records: it needs CAP_SETUID and CAP_SETGID to become another one "
                                      "(and cannot in a user namespace)");
#ifdef __SANITIZE_ADDRESS__
    return NULL; /* the leak checker forks, and traces, at the end */
#else
    return sandbox_enter_reader(s->command.pid);
#endif
}

/* ---- the loop ---- */

static void end_with(struct session *s, enum trace_end_reason reason)
{
    if (!s->stop) {
        s->stop = true;
        s->reason = reason;
    }
}

static void read_signals(struct session *s)
{
    struct signalfd_siginfo info;

    while (read(s->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        if (info.ssi_signo == SIGUSR1)
            s->event_signalled = true;
        else if (s->rotates)
            s->rotate_now = true;
        else
            interrupt_tell();
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

/* What is due once a second, and files. */
static struct error *tend(struct session *s, uint64_t now)
{
    if (now - s->flushed_ns >= FLUSH_NS) {
        modules_tend(s->modules, now);
        source_table_tend(s->sources, now);
        TRY(processes_reap(s->processes, now));
        TRY(session_limit_memory(s, now));
        flush(s, now);
        TRY(session_keep_budget(s, now));
    }
    if (s->event_signalled) {
        s->event_signalled = false;
        TRY(flight_event(s, now, "SIGUSR1", true));
    }
    TRY(s->stop ? NULL : flight_tend(s, now));
    if (!s->stop && session_rotation_due(s, now)) {
        TRY(session_rotate(s, now - EVENT_DELAY_NS));
        status_file_write(s, now);
    } else if (status_file_due(s, now)) {
        session_sum_losses(s);
        status_file_write(s, now);
    }
    return NULL;
}

/* Ends the recording with its command. Without BPF, what that has used is read last while it is a zombie. */
static struct error *heed_command(struct session *s)
{
    if (s->command.pid <= 0 || !command_has_ended(&s->command))
        return NULL;
    if (s->proc && !s->command.exited) {
        proc_sampler_hurry(s->proc);
        TRY(session_drain(s, now_ns()));
    }
    command_poll(&s->command, now_ns());
    interrupt_command_ended();
    end_with(s, TRACE_END_COMMAND);
    return NULL;
}

static struct error *loop(struct session *s)
{
    const struct session_options *o = s->o;
    const int *sideband_fd;
    uint32_t sideband_count = s->sideband ? sideband_fds(s->sideband, &sideband_fd) : 0;
    struct pollfd fds[SESSION_FDS + sideband_count];
    uint64_t last = now_ns();
    bool terminal = !o->quiet && isatty(fileno(o->messages));

    fds[SESSION_FD_SIGNAL] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
    fds[SESSION_FD_COMMAND] = (struct pollfd){.fd = s->command_fd, .events = POLLIN};
    fds[SESSION_FD_TABLES] = (struct pollfd){.fd = s->tables ? tables_fd(s->tables) : -1, .events = POLLIN};
    fds[SESSION_FD_SAMPLER] = (struct pollfd){.fd = s->sampler ? sampler_wake_fd(s->sampler) : -1, .events = POLLIN};
    fds[SESSION_FD_MODULES] = (struct pollfd){.fd = modules_fd(s->modules), .events = POLLIN};
    fds[SESSION_FD_INTERRUPT] = (struct pollfd){.fd = interrupt_fd(), .events = POLLIN};
    for (uint32_t i = 0; i < sideband_count; i++)
        fds[SESSION_FDS + i] = (struct pollfd){.fd = sideband_fd[i], .events = POLLIN};
    while (!s->stop) {
        uint64_t now = now_ns(), due = session_due_ns(s, last, now, terminal);
        TRY(session_wait(s, fds, SESSION_FDS + sideband_count, last, due, &now));
        if (fds[SESSION_FD_SIGNAL].revents)
            read_signals(s);
        if (interrupt_told())
            end_with(s, TRACE_END_SIGNAL);
        TRY(heed_command(s));
        if (o->duration_ns && now >= s->start_ns + o->duration_ns)
            end_with(s, TRACE_END_DURATION);
        last = now;
        session_heed_reader(s, now);
        TRY(session_drain(s, now - EVENT_DELAY_NS));
        TRY(processes_rescan(s->processes, now));
        TRY(tend(s, now));
        if (interrupt_told()) /* writing may have been given up for it, which is no error */
            end_with(s, TRACE_END_SIGNAL);
        if (trace_writer_full(s->writer))
            end_with(s, TRACE_END_FULL);
        if (trace_writer_failed(s->writer)) {
            end_with(s, TRACE_END_ERROR);
            return NULL;
        }
        if (s->census && census_is_complete(s->census, now))
            end_with(s, TRACE_END_DURATION);
        if (o->pid_count && !any_pid_left(s))
            end_with(s, TRACE_END_PROCESSES);
        if (terminal && now - s->status_ns >= STATUS_NS)
            report_status(s, now);
    }
    if (terminal)
        messages_clear_line(o->messages);
    return NULL;
}

static enum module_use module_use(void *builder, const struct module *m)
{
    return trace_builder_module_use(builder, m);
}

/* Says what was recorded, and before that why it is not all. An error that was said is s->told. */
static void conclude(struct session *s, struct error *err, uint64_t end_ns)
{
    status_file_end(s, end_ns);
    if (s->o->quiet)
        return;
    if (err)
        messages_line(s->o->messages, "%s", error_text(err));
    s->told = err != NULL;
    report_summary(s, end_ns);
}

static struct error *finish(struct session *s)
{
    if (s->sleepers)
        TRY(sleepers_finish(s->sleepers, now_ns()));
    if (s->tasks)
        TRY(task_looks_finish(s->tasks, now_ns()));
    TRY(trace_builder_read_all_memory(s->builder, now_ns())); /* what comes of it is still sampled */
    if (s->census)
        TRY(thread_states_put(s));
    if (s->sampler)
        TRY(sampler_disable(s->sampler));
    s->end_ns = now_ns();
    TRY(session_drain_for_reader(s));
    if (s->proc)
        proc_sampler_finish(s->proc);
    errand_settle();
    struct error *err = session_forgive_reader(s, session_end_file(s, s->end_ns, s->reason));
    conclude(s, err, s->end_ns);
    if (!err && s->bundle) {
        session_go_as_started(s); /* to pack binaries takes long */
        err = archive_modules(s->bundle, s->modules, session_takes_snapshots(s->o), module_use, s->builder);
    }
    return err;
}

static struct error *begin_ticks(struct session *s)
{
    TRY(session_catch_up(s, now_ns() - EVENT_DELAY_NS));
    return sampler_enable(s->sampler);
}

/* Whose stacks the recording waits for. */
static struct error *begin_census(struct session *s)
{
    uint32_t cursor = 0;

    census_begin(s->census, now_ns());
    for (struct process *p; (p = processes_next(s->processes, &cursor));) {
        if (!p->ended_ns && processes_wants(s->processes, p))
            TRY(census_list(s->census, p->tgid));
    }
    return NULL;
}

/*
 * The command's first moments are those in which its interpreter and its unwind tables are to be found: nothing else is in
 * their way then.
 */
static struct error *let_command_go(struct session *s)
{
    kallsyms_wait(s->kallsyms);
    s->command_fd = (int)syscall(SYS_pidfd_open, s->command.pid, 0);
    if (s->sampler)
        sampler_expect(s->sampler, (uint32_t)s->command.pid);
    return command_go(&s->command, s->o->command[0], now_ns());
}

/* Where we end before the command does: it is told, and its end is waited for. */
static void end_command(struct session *s)
{
    if (s->command.pid <= 0 || s->command.go_fd >= 0 || s->command.exited)
        return;
    kill(s->command.pid, SIGTERM);
    if (s->reason == TRACE_END_DURATION && !s->o->quiet)
        messages_line(s->o->messages, "-d is over: the command was told to end (SIGTERM)");
    while (!command_poll(&s->command, now_ns()))
        poll(&(struct pollfd){.fd = s->command_fd, .events = POLLIN}, 1, 1000);
}

struct error *session_run(const struct session_options *options, int *exit_code)
{
    struct session *s = calloc(1, sizeof *s);
    struct error *err;

    *exit_code = 0;
    if (!s)
        return error_no_memory();
    s->o = options;
    s->signal_fd = s->command_fd = -1;
    s->command.go_fd = s->command.error_fd = -1;
    err = session_set_up(s);
    if (!err)
        err = confine(s);
    if (!err)
        err = trace_builder_read_memory(s->builder, now_ns());
    if (!err && s->sampler)
        err = begin_ticks(s);
    if (!err && s->census)
        err = begin_census(s);
    if (!err && s->sleepers)
        err = sleepers_run(s->sleepers, now_ns());
    if (s->tasks)
        task_looks_begin(s->tasks, now_ns());
    if (!err && options->command)
        err = let_command_go(s);
    if (!err) {
        session_sum_losses(s);
        status_file_write(s, now_ns());
        interrupt_started();
        service_manager_ready(s->manager, processes_counts(s->processes).python);
        err = loop(s);
        service_manager_stopping(s->manager);
        if (!err)
            err = finish(s);
        if (err && s->writer) /* what has been captured stays, with an end that says so */
            error_destroy(session_end_file(s, now_ns(), TRACE_END_ERROR));
        if (err && !s->end_ns)
            conclude(s, err, now_ns());
    }
    end_command(s);
    if (!err && s->reader_gone)
        *exit_code = 128 + SIGPIPE; /* as a shell has it of other programs */
    else if (!err && s->command.exited)
        *exit_code = command_exit_code(&s->command);
    else if (!err && advice_fails_empty(s)) {
        *exit_code = EXIT_FAILURE;
        if (s->o->quiet) /* there was no summary to say it */
            advice_no_sample(s);
    }
    if (err && s->told) {
        error_destroy(err);
        err = NULL;
        *exit_code = EXIT_FAILURE;
    }
    session_tear_down(s);
    free(s);
    return err;
}
