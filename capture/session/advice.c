/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at /proc and at the table of processes; what has ended meanwhile is not mentioned. */
#include "capture/session/advice.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/asyncio/task_reader.h"
#include "capture/host/messages.h"
#include "capture/host/privileges.h"
#include "capture/host/restraints.h"
#include "capture/host/procfs_task.h"
#include "capture/process/process_names.h"
#include "capture/process/process_program.h"
#include "formats/base/numbers.h"
#include "formats/base/path.h"
#include "formats/cpython/version.h"

/* Of a list of processes no more than this many are named. */
#define NAMED_MAX 8
/* How long processes that outlive the command may take to end before they are named, and how often they are looked at. */
#define LEFT_GRACE_MS 200
#define LEFT_STEP_MS 10

/* The interpreter of PyPy is a program or a library named after it: pypy3.10-c, libpypy3.10-c.so. */
static bool is_pypy(const struct process *p)
{
    for (size_t i = 0; i < code_mappings_count(&p->mappings); i++) {
        const char *name = path_base(code_mappings_at(&p->mappings, i)->path);
        if (!strncmp(name, "pypy", 4) || !strncmp(name, "libpypy", 7))
            return true;
    }
    return false;
}

/* ---- processes ---- */

struct error *advice_check_pids(const struct session_options *o)
{
    for (uint32_t i = 0; i < o->pid_count; i++) {
        char path[32], text[4096];
        snprintf(path, sizeof path, "/proc/%u/status", o->pids[i]);
        uint32_t tgid = procfs_read_at(AT_FDCWD, path, text, sizeof text) ? procfs_last_number(text, "Tgid:") : 0;
        if (tgid && tgid != o->pids[i])
            return error_create(ERROR_UNSUPPORTED, "%u is a thread of process %u; record that one: -p %u", o->pids[i], tgid,
                                tgid);
    }
    return NULL;
}

struct error *advice_no_process(const struct session *s, uint32_t pid)
{
    const char *hidepid = s->host.hidepid;
    char module[RESTRAINTS_TEXT_MAX];

    restraints_module(module);
    if ((!*hidepid && !*module) || (kill((pid_t)pid, 0) && errno == ESRCH))
        return error_create(ERROR_NOT_FOUND, "there is no process %u", pid);
    if (!*hidepid)
        return error_create(ERROR_PERMISSION, "process %u may not be read: %.200s may forbid it (the kernel's log has the denial)", pid, module);
    return error_create(ERROR_PERMISSION,
                        "process %u is hidden from pycap: /proc is mounted with hidepid=%s, and pycap has no CAP_SYS_PTRACE. Give it that "
                        "capability, or run it as root or as the process's user",
                        pid, hidepid);
}

/* True if a descendant can be recorded: the user may have given the pid of a shell that runs Python. */
static bool runs_python(const struct session *s, uint32_t tgid)
{
    enum { DEPTH_MAX = 64 };
    uint32_t cursor = 0;

    for (struct process *p; (p = processes_next(s->processes, &cursor));) {
        const struct process *above = process_has_python(p) ? p : NULL;
        for (int i = 0; above && i < DEPTH_MAX; i++) {
            if (above->parent_tgid == tgid)
                return true;
            above = processes_find(s->processes, above->parent_tgid);
        }
    }
    return false;
}

bool advice_may_be_python(const struct session *s, const struct process *p)
{
    return !p->python && !p->forbidden && (process_is_inspected(p) || runs_python(s, p->tgid));
}

struct error *advice_no_python(const struct session *s, struct process *p)
{
    char text[PROCESS_NAME_MAX];
    const char *name = processes_name(s->processes, p, text), *unopened = process_unopened(p);
    struct procfs_stat stat;
    char without[PRIVILEGES_TEXT_MAX];

    if (procfs_stat((pid_t)p->tgid, 0, &stat) && (stat.state == 'Z' || stat.state == 'X'))
        return error_create(ERROR_NOT_FOUND, "process %u (%s) has ended: its parent has not waited for it yet (a zombie)",
                            p->tgid, name);
    privileges_missing_to_read(&s->host, without);
    if (p->forbidden)
        return error_create(ERROR_PERMISSION, "process %u (%s): /proc/%u/maps may not be read%s", p->tgid, name, p->tgid,
                            without);
    if (is_pypy(p))
        return error_create(ERROR_UNSUPPORTED,
                            "process %u (%s) is PyPy, which pycap cannot read (only CPython); -a records its native frames",
                            p->tgid, name);
    if (unopened)
        return error_create(ERROR_PERMISSION,
                            "process %u (%s): %s cannot be opened%s, and no other file that it maps is a CPython interpreter "
                            "(-a records such processes, too)",
                            p->tgid, name, unopened, without);
    return error_create(ERROR_UNSUPPORTED,
                        "process %u (%s): no CPython was found: no file that it maps is an interpreter (-a records such "
                        "processes, too)",
                        p->tgid, name);
}

struct error *advice_refused(const struct session *s, struct process *p)
{
    const struct py_image *image = &p->python->python;
    char version[32], name[PROCESS_NAME_MAX];

    return error_create(ERROR_UNSUPPORTED, "process %u (%s, CPython %s) cannot be recorded: %s", p->tgid,
                        processes_name(s->processes, p, name), py_version_text(image->version_hex, version), image->refused);
}

/* One that is asked for and is a CPython that cannot be recorded; NULL: there is none. */
static struct process *find_refused(const struct session *s)
{
    uint32_t cursor = 0;

    for (struct process *p; (p = processes_next(s->processes, &cursor));) {
        if (p->in_scope && p->python && p->python->python.refused)
            return p;
    }
    return NULL;
}

/* What a process that was asked for is called; `comm` where the table has it no more. */
static const char *name_of(const struct session *s, uint32_t pid, const char *comm, char name[PROCESS_NAME_MAX])
{
    struct process *p = processes_find(s->processes, pid);

    return p ? processes_name(s->processes, p, name) : comm;
}

/* Writes why a process stands still; false when it does not, or has ended. */
static bool say_stopped(const struct session *s, uint32_t pid)
{
    FILE *f = s->o->messages;
    struct procfs_stat stat;
    char name[PROCESS_NAME_MAX];

    if (!procfs_stat((pid_t)pid, 0, &stat) || (stat.state != 'T' && stat.state != 't'))
        return false;
    if (stat.state == 'T')
        messages_line(f, "process %u (%s) is stopped (SIGSTOP): kill -CONT %u lets it go on", pid, name_of(s, pid, stat.comm, name),
                      pid);
    else
        messages_line(f, "process %u (%s) is stopped by a debugger", pid, name_of(s, pid, stat.comm, name));
    return true;
}

/* ---- names and cgroups ---- */

static bool has_process_named(struct session *s, const char *text)
{
    uint32_t cursor = 0;

    for (struct process *p; (p = processes_next(s->processes, &cursor));) {
        if (processes_is_named(s->processes, p, text))
            return true;
    }
    return false;
}

/* How much of a name that no process has is looked for in others. */
#define ALIKE_MIN 3

static bool is_in(const char *text, const char *name)
{
    size_t len = strlen(text);

    return len >= ALIKE_MIN && *name && (strcasestr(name, text) || (strlen(name) >= ALIKE_MIN && strcasestr(text, name)) ||
                                         !strncasecmp(name, text, len - 1));
}

/* Appends the Python processes whose names are like `text`, each name once: what was meant, perhaps. */
static void put_alike(struct session *s, const char *text, struct buf *out)
{
    uint32_t cursor = 0, named = 0;

    for (struct process *p; named < NAMED_MAX && (p = processes_next(s->processes, &cursor));) {
        char name[PROCESS_NAME_MAX], line[PROCESS_NAME_MAX + 32];
        if (p->ended_ns || !process_is_python_program(p))
            continue;
        processes_name(s->processes, p, name);
        if (!is_in(text, name) && !is_in(text, p->comm))
            continue;
        snprintf(line, sizeof line, *process_title(p) ? "'%s' with the title '%s'" : "'%s'", name, process_title(p));
        if (strstr(buf_cstr(out), line))
            continue;
        buf_printf(out, "%s%s", named++ ? ", " : "; there is ", line);
    }
}

/* Names and cgroups that nothing on this host has. `yet`: they may still come. Returns whether there were any. */
static bool say_unknown(struct session *s, const char *yet)
{
    const struct filter *filter = s->o->filter;
    FILE *f = s->o->messages;
    bool any = false;

    for (size_t i = 0; filter && i < filter->comms.count; i++) {
        if (has_process_named(s, filter->comms.data[i]))
            continue;
        struct buf alike = {0};
        put_alike(s, filter->comms.data[i], &alike);
        messages_line(f, "no process %s named '%s'%s%s", s->o->command || s->o->pid_count ? "asked for is" : "is",
                      filter->comms.data[i], yet, buf_cstr(&alike));
        buf_deinit(&alike);
        any = true;
    }
    for (size_t i = 0; filter && i < filter->cgroups.count; i++) {
        if (filter_has_cgroup(filter, i))
            continue;
        messages_line(f, "no such cgroup%s: %s%s", yet, filter->mount, filter->cgroups.data[i]);
        any = true;
    }
    return any;
}

/* A limit in CPUs that this host does not have: percent were meant, perhaps. */
static void say_unreachable(const struct session *s, const struct when_condition *c, const char *text)
{
    struct number n;

    if (c->fact == WHEN_CPU && c->limit >= s->cpu_count)
        messages_line(s->o->messages, "--when '%s' is no event ever: that is %g CPUs, and %s sampled%s", text, c->limit,
                      counted(s->cpu_count, "is", "are", &n), c->percent ? "" : " (with a % it is a share of one)");
}

void advice_at_start(struct session *s)
{
    const struct session_options *o = s->o;

    if (o->quiet)
        return;
    for (uint32_t i = 0; i < o->pid_count && i < NAMED_MAX; i++)
        say_stopped(s, o->pids[i]);
    for (uint32_t i = 0; o->when && i < o->when->count; i++)
        say_unreachable(s, &o->when->list[i], o->when->texts[i]);
    if (!o->command)
        say_unknown(s, " yet");
}

/* ---- at the end ---- */

/* What a process did not do that ran well and has no sample. */
static const char *what_it_did_not(const struct session *s, const struct process *p, const char *tick)
{
    bool clock = s->proc != NULL;

    for (uint32_t i = 0; i < s->events.count; i++)
        clock = clock || event_has_rate(s->events.list[i].source);
    if (s->tasks && s->events.count == 1) {
        enum task_support support = p ? task_reader_support(p) : TASKS_NO_ASYNCIO;
        return support == TASKS_TOO_OLD   ? "runs CPython before 3.12, whose asyncio tasks cannot be looked at"
               : support == TASKS_UNKNOWN ? "runs a build of CPython of which it is not known where asyncio tasks are"
                                          : "had no asyncio task that waited when pycap looked";
    }
    return clock ? tick : "did nothing that the events count";
}

/* Why none of the processes given with -p brought a sample. */
static void explain_pids(struct session *s)
{
    const struct session_options *o = s->o;

    for (uint32_t i = 0; i < o->pid_count && i < NAMED_MAX; i++) {
        const struct process *p = processes_find(s->processes, o->pids[i]);
        struct procfs_stat stat;
        char name[PROCESS_NAME_MAX];
        if (say_stopped(s, o->pids[i]))
            continue;
        if (!procfs_stat((pid_t)o->pids[i], 0, &stat) || stat.state == 'Z' || stat.state == 'X')
            messages_line(o->messages, "process %u has ended", o->pids[i]);
        else if (p && p->selected && !o->include_non_python && !p->python && !advice_may_be_python(s, p))
            messages_line(o->messages, "process %u (%s): no CPython was found; -a records such processes, too", o->pids[i],
                          name_of(s, o->pids[i], stat.comm, name));
        else
            messages_line(o->messages, "process %u (%s) %s", o->pids[i], name_of(s, o->pids[i], stat.comm, name),
                          what_it_did_not(s, p, "did not run at a tick: it waits, and only threads that run are sampled"));
    }
}

/* Takes the error. */
static void say_error(const struct session *s, struct error *why)
{
    messages_line(s->o->messages, "%s", error_text(why));
    error_destroy(why);
}

static void explain_command(const struct session *s)
{
    const char *name = path_base(s->o->command[0]);
    const struct process *p = processes_find(s->processes, (uint32_t)s->command.pid);
    struct process *refused = find_refused(s);

    if (s->proc && s->losses[LOSS_process_forbidden])
        say_error(s, proc_sampler_refused((uint32_t)s->command.pid));
    else if (p && is_pypy(p))
        messages_line(s->o->messages, "%s is PyPy, which pycap cannot read (only CPython); -a records its native frames", name);
    else if (!processes_counts(s->processes).seen_python && refused)
        say_error(s, advice_refused(s, refused));
    else if (!processes_counts(s->processes).seen_python)
        messages_line(s->o->messages, "%s: no CPython was found; -a records the native frames of other programs", name);
    else
        messages_line(s->o->messages, "%s %s", name, what_it_did_not(s, p, "did not run at a tick: it was too short, or waited"));
}

/* "those that pass --comm and --container" */
static void say_filtered(const struct session_options *o)
{
    const struct filter *f = o->filter;
    const struct {
        const char *name;
        size_t count;
    } filters[] = {{"--comm", f->comms.count}, {"--cgroup", f->cgroups.count}, {"--container", f->containers.count}};
    struct buf names = {0};

    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        if (filters[i].count)
            buf_printf(&names, "%s%s", names.len_bytes ? " and " : "", filters[i].name);
    }
    messages_line(o->messages, "those that pass %s were idle, or are no CPython: pycap info lists what can be recorded", buf_cstr(&names));
    buf_deinit(&names);
}

/* Why no process of the whole host brought a sample. */
static void explain_host(const struct session *s)
{
    uint64_t forbidden = processes_counts(s->processes).forbidden, gone = s->losses[LOSS_process_gone];
    char without[PRIVILEGES_TEXT_MAX];
    struct number n;

    privileges_missing_to_read(&s->host, without);
    if (gone && *without)
        messages_line(s->o->messages, "%s fell on processes that could not be read%s", counted(gone, "sample", "samples", &n), without);
    if (forbidden)
        messages_line(s->o->messages, "%s may not be read%s; all others were idle, or are no CPython: pycap info lists what can be recorded",
                      counted(forbidden, "process", "processes", &n), without);
    else
        messages_line(s->o->messages, "all were idle, or there is none: pycap info lists what can be recorded");
}

void advice_no_sample(struct session *s)
{
    const struct session_options *o = s->o;
    const char *kind = o->include_non_python ? "process" : "Python process";

    messages_write(o->messages, "No sample fell on a %s%s.\n", kind,
                   o->pid_count || o->command ? " that was asked for" : o->filter ? " that passes the filter" : "");
    if (o->filter && say_unknown(s, ""))
        return;
    if (o->filter)
        say_filtered(o);
    else if (o->command)
        explain_command(s);
    else if (o->pid_count)
        explain_pids(s);
    else
        explain_host(s);
}

bool advice_fails_empty(const struct session *s)
{
    return !s->o->command && (s->o->pid_count || s->o->filter) && !trace_builder_counts(s->builder).samples;
}

/* The next process that the command left and that still runs; NULL: there is none. */
static struct process *next_left(const struct session *s, uint32_t *cursor)
{
    for (struct process *p; (p = processes_next(s->processes, cursor));) {
        struct procfs_stat stat;
        if (p->in_scope && !p->ended_ns && p->tgid != (uint32_t)s->command.pid && process_has_python(p) &&
            procfs_stat((pid_t)p->tgid, 0, &stat) && stat.state != 'Z' && stat.state != 'X')
            return p;
    }
    return NULL;
}

/* Helpers of multiprocessing and others see that their program has gone, and go, too: they are given a moment. */
static void wait_for_helpers(const struct session *s)
{
    for (int i = 0; i < LEFT_GRACE_MS / LEFT_STEP_MS && next_left(s, &(uint32_t){0}); i++)
        poll(NULL, 0, LEFT_STEP_MS);
}

void advice_left_behind(struct session *s)
{
    uint32_t cursor = 0, named = 0;

    if (s->reason != TRACE_END_COMMAND)
        return;
    wait_for_helpers(s);
    for (struct process *p; named < NAMED_MAX && (p = next_left(s, &cursor)); named++) {
        char name[PROCESS_NAME_MAX];
        messages_line(s->o->messages, "the command has ended; its child %u (%s) runs on and is not recorded any more: pycap "
                                      "record -p %u",
                      p->tgid, processes_name(s->processes, p, name), p->tgid);
    }
}
