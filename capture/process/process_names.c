/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/process/process_names.h"

#include <stdio.h>
#include <string.h>

#include "capture/host/procfs.h"
#include "capture/process/process_program.h"
#include "formats/trace/program_name.h"

/* ---- parents ---- */

/* A pid is given to another process once its own has ended. */
static bool is_older(const struct process *parent, const struct process *child)
{
    if (parent->start_ticks && child->start_ticks)
        return parent->start_ticks <= child->start_ticks;
    if (parent->start_boottime_ns && child->start_boottime_ns)
        return parent->start_boottime_ns <= child->start_boottime_ns;
    return !child->forked_ns || parent->forked_ns <= child->forked_ns;
}

/* Puts a process into the table of which no more is wanted than its name. NULL: it has ended. */
static struct process *read_parent(struct processes *p, uint32_t tgid)
{
    struct procfs_status status;
    struct process *parent;
    struct error *err = procfs_status((pid_t)tgid, &status);

    if (!err)
        err = processes_begin(p, tgid, 0, &parent);
    if (err) {
        error_destroy(err);
        return NULL;
    }
    parent->parent_tgid = status.parent_tgid;
    parent->ns_tgid = status.ns_tgid;
    parent->start_ticks = status.start_ticks;
    memcpy(parent->comm, status.comm, sizeof parent->comm);
    return parent;
}

struct process *processes_parent(struct processes *p, struct process *child)
{
    uint32_t tgid = child->parent_tgid;

    if (!tgid || tgid == child->tgid)
        return NULL;
    struct process *parent = processes_find(p, tgid);
    if (!parent && !p->options.whole_host && !child->ended_ns)
        parent = read_parent(p, tgid);
    if (!parent || !is_older(parent, child))
        return NULL;
    process_find_program(parent, false);
    return process_is_python_program(parent) ? parent : NULL;
}

static const char *begun_by(const struct process *process)
{
    return program_begun_by(process->program_kind, process->program);
}

struct process *processes_master(struct processes *p, struct process *process)
{
    struct process *at = begun_by(process) ? process : NULL;

    for (int i = 0; at && i < PROGRAM_PARENTS_MAX; i++) {
        at = processes_parent(p, at);
        if (at && !begun_by(at))
            return at;
    }
    return NULL;
}

/* ---- names ---- */

/* Without the program that it works for. */
static void put_own_name(const struct process *process, struct buf *out)
{
    if (!program_put(process->program_kind, process->program, out))
        buf_put_str(out, process->comm);
}

static void put_name(struct processes *p, struct process *process, struct buf *out)
{
    struct process *master = processes_master(p, process);
    struct buf name = {0};

    if (!master) {
        put_own_name(process, out);
        return;
    }
    put_own_name(master, &name);
    program_put_worker(buf_cstr(&name), begun_by(process), out);
    buf_deinit(&name);
}

const char *processes_name(struct processes *p, struct process *process, char name[PROCESS_NAME_MAX])
{
    struct buf text = {0};

    process_find_program(process, false);
    put_name(p, process, &text);
    snprintf(name, PROCESS_NAME_MAX, "%s", text.bad || !text.len_bytes ? process->comm : buf_cstr(&text));
    buf_deinit(&text);
    return name;
}

const char *process_title(const struct process *process)
{
    bool is_named = program_has_name(process->program_kind, process->program);

    return is_named && program_is_title(process->comm, process->exe, process->program) ? process->comm : "";
}

/* ---- the filter ---- */

static bool is_called(const struct process *process, const char *text)
{
    struct buf name = {0};

    put_own_name(process, &name);
    bool equal = !strcmp(buf_cstr(&name), text) || (process->program && !strcmp(process->program, text));
    buf_deinit(&name);
    return equal;
}

bool processes_is_named(struct processes *p, struct process *process, const char *text)
{
    struct buf name = {0};

    if (program_is_comm(text, process->comm))
        return true;
    process_find_program(process, false);
    if (process->program_kind == TRACE_PROGRAM_UNRECORDED)
        return false;
    if (is_called(process, text))
        return true;
    struct process *master = processes_master(p, process);
    if (!master)
        return false;
    put_name(p, process, &name);
    bool equal = !strcmp(buf_cstr(&name), text) || is_called(master, text);
    buf_deinit(&name);
    return equal;
}

/* The whole host is read in the order of pids, and those are given out again. */
static bool is_parent_missing(struct processes *p, const struct process *process)
{
    return begun_by(process) && p->options.whole_host && process->parent_tgid && !processes_find(p, process->parent_tgid);
}

bool processes_passes(struct processes *p, struct process *process)
{
    const struct filter *f = p->options.filter;
    bool named = !f || !f->comms.count;

    process->undecided = false;
    for (size_t i = 0; !named && i < f->comms.count; i++)
        named = processes_is_named(p, process, f->comms.data[i]);
    if (!named) {
        process->undecided = process->undecided_tries < UNDECIDED_TRIES_MAX &&
                             (process->program_kind == TRACE_PROGRAM_UNRECORDED || is_parent_missing(p, process));
        return false;
    }
    return !f || filter_passes_cgroup(f, process->tgid);
}
