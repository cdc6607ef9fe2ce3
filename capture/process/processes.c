/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each kind of event. Changes that no event reports are found in processes_reap(). */
#include "capture/process/processes.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/host/procfs.h"
#include "capture/process/process_names.h"
#include "capture/process/process_program.h"
#include "formats/base/clock.h"

/* A process stays in the table this long after its end: the kernel may still run, and be sampled, on its behalf. */
#define LINGER_NS NS_PER_S
/* How often cgroups are read again when there is a --cgroup filter. */
#define FILTER_AGAIN_NS (5 * NS_PER_S)

/* When a process has more threads than this, they are forgotten. */
#define THREADS_MAX 4096

/* What a child has from its parent. */
static void inherit(struct process *child, const struct process *parent, uint64_t time_ns)
{
    memcpy(child->comm, parent->comm, sizeof child->comm);
    child->undecided = parent->undecided;
    if (parent->exe)
        child->exe = strdup(parent->exe);
    child->program_kind = parent->program_kind;
    if (parent->program)
        child->program = strdup(parent->program);
    child->before_kind = parent->before_kind;
    if (parent->before)
        child->before = strdup(parent->before);
    child->folder_asked = parent->folder_asked;
    if (parent->folder)
        child->folder = strdup(parent->folder);
    child->glibc = parent->glibc;
    child->gil = parent->gil;
    child->gil_len = parent->gil_len;
    child->switches_stacks = parent->switches_stacks;
    child->name_hints = parent->name_hints;
    child->asyncio = parent->asyncio;
    child->python = parent->python;
    child->python_bias = parent->python_bias;
    child->rival = parent->rival;
    child->rival_bias = parent->rival_bias;
    child->python_sure = parent->python_sure;
    child->rival_runs = parent->rival_runs;
    child->ran_python = parent->ran_python;
    child->replaced_ns = parent->replaced_ns;
    child->cut_ns = parent->cut_ns;
    memcpy(child->lists, parent->lists, sizeof child->lists);
    code_mappings_share(&child->mappings, &parent->mappings, time_ns);
}

/* ---- whose a process is ---- */

/* How often may be asked whose a process is, of which samples show ever other users. */
#define OWNER_AGAIN_NS (100 * NS_PER_MS)

/*
 * A child is whose its parent is, except that one of root's may become anybody's before it shows: until that is known, nobody
 * pays for it in particular.
 */
static void inherit_owner(struct processes *p, struct process *child, const struct process *parent)
{
    const struct owner_facts unknown = {.uid = PROCFS_UID_UNKNOWN};

    processes_set_owner(p, child, parent && !owner_is_root(parent->owner) ? &parent->owner_facts : &unknown);
}

/* Finds out whose a process is, if that is unknown: by what the sampler noted when the program began, else by /proc. */
static void find_owner(struct processes *p, struct process *process)
{
    struct wire_owner noted;

    if (process->owner_asked || process->owner != owner_unknown())
        return;
    process->owner_asked = true;
    /* One that was noted before the process began here is of the program before. */
    if (p->sampling.sampler && sampler_get_owner(p->sampling.sampler, process->tgid, &noted) &&
        noted.time_ns >= process->since_ns) {
        const struct owner_facts facts = {noted.uid, noted.container, noted.user_ns, noted.user_ns_owner,
                                          noted.login};
        processes_set_owner(p, process, &facts);
    } else {
        processes_read_owner(p, process);
    }
}

/* No sample shows what becomes of root's programs that are not sampled: so it is asked when they cost something, now and then. */
static void doubt_root(struct processes *p, struct process *process, uint64_t time_ns)
{
    if (!owner_is_root(process->owner) || time_ns < process->root_due_ns)
        return;
    process->root_due_ns = time_ns + OWNER_AGAIN_NS;
    processes_read_owner(p, process);
}

/* A sample shows the user of its thread: servers give up their rights without exec. */
static void see_user(struct processes *p, struct process *process, const struct wire_sample *s)
{
    bool is_new = s->user && s->user != process->shown_user;

    find_owner(p, process);
    if (!is_new || (process->shown_user && s->time_ns < process->owner_due_ns))
        return;
    process->shown_user = s->user;
    process->owner_due_ns = s->time_ns + OWNER_AGAIN_NS;
    if (s->user - 1 == process->owner_facts.uid || processes_read_owner(p, process))
        return;
    if (owner_is_root(process->owner))
        inherit_owner(p, process, NULL);
}

/* Returns 0 where it is unknown. */
static uint64_t generation_of(const struct process *process)
{
    return process->bound ? process->exec_generation : process->expected_generation;
}

static struct error *on_fork(struct processes *p, const struct sideband_event *e)
{
    if (e->tgid == e->parent_tgid)
        return NULL; /* a thread: it is added when it is sampled */
    struct process *parent = processes_find(p, e->parent_tgid), *child;
    bool in_scope = p->options.whole_host || (parent && parent->in_scope && p->options.follow);
    if (!in_scope) {
        if ((child = processes_find(p, e->tgid)))
            processes_drop(p, child, e->time_ns);
        if (parent && parent->in_scope) /* BPF copied its configuration to the child, which is not to be sampled */
            process_sampling_disinherit(&p->sampling, e->tgid);
        return NULL;
    }
    TRY(processes_begin(p, e->tgid, e->time_ns, &child));
    child->parent_tgid = e->parent_tgid;
    child->forked_ns = e->time_ns;
    /* A child has the name and cgroup of its parent, so the filter's answer is the same. */
    process_select(child, true, parent ? parent->passes : processes_passes(p, child));
    inherit_owner(p, child, parent);
    if (!parent)
        return NULL;
    inherit(child, parent, e->time_ns);
    child->expected_generation = generation_of(parent);
    if (child->selected && p->waiting.count) /* for a module, perhaps, that the parent waits for */
        TRY(processes_look(p, child));
    if (!process_has_python(child) && !parent->configured)
        return NULL;
    if (child->selected)
        return processes_configure(p, child);
    process_sampling_disinherit(&p->sampling, child->tgid);
    return NULL;
}

static struct error *on_exec(struct processes *p, const struct sideband_event *e)
{
    struct process *old = processes_find(p, e->tgid), *process;
    if (!old && !p->options.whole_host)
        return NULL;
    bool in_scope = old ? old->in_scope : true;
    p->held_tgid = e->tgid == p->held_tgid ? 0 : p->held_tgid;
    struct process before = {0};
    if (old) {
        before.parent_tgid = old->parent_tgid;
        before.start_ticks = old->start_ticks;
        before.forked_ns = old->forked_ns;
        process_keep_program(&before, old);
    }
    /* Where events were lost since, it may be another process, or its second exec. */
    uint64_t generation = old && old->begun_ns > p->lost_ns ? generation_of(old) : 0;

    struct error *err = processes_begin(p, e->tgid, e->time_ns, &process);
    if (err) {
        process_forget_program(&before);
        return err;
    }
    process_take_program(process, &before);
    process_sampling_disinherit(&p->sampling, e->tgid);
    process->parent_tgid = before.parent_tgid;
    process->start_ticks = before.start_ticks;
    process->forked_ns = before.forked_ns;
    process->expected_generation = generation ? generation + 1 : 0;
    snprintf(process->comm, sizeof process->comm, "%.16s", e->text);
    process_select(process, in_scope, in_scope && processes_passes(p, process));
    inherit_owner(p, process, NULL);
    find_owner(p, process);
    process->root_due_ns = e->time_ns + OWNER_AGAIN_NS;
    if (!p->options.whole_host)
        p->counts.loaded_ns = e->time_ns;
    return p->options.include_non_python ? processes_configure(p, process) : NULL;
}

static struct error *on_mmap(struct processes *p, const struct sideband_event *e)
{
    struct process *process = processes_find(p, e->tgid);

    if (!(e->protection & PROT_EXEC))
        return NULL;
    if (!process && p->options.whole_host) {
        TRY(processes_read(p, e->tgid, true, e->time_ns, &process));
        if (process && !process->forbidden)
            return NULL;
    }
    /* Nothing is kept about those that are not sampled. One that the filter lets pass later is read then. */
    if (!process || !(process->selected || process->undecided))
        return NULL;
    struct code_mapping mapping = {
        .time_ns = e->time_ns,
        .address = e->address,
        .length = e->length,
        .file_offset = e->file_offset,
        .protection = e->protection,
        .map_flags = e->map_flags,
        .device_major = e->device_major,
        .device_minor = e->device_minor,
        .inode = e->inode,
        .inode_generation = e->inode_generation,
        .by_event = true,
        .path = e->text,
    };
    if (processes_has_mapping(process, &mapping))
        return NULL;
    find_owner(p, process);
    doubt_root(p, process, e->time_ns);
    TRY(quota_take(p->quotas, process->slot, QUOTA_mappings, 1, e->time_ns) ? processes_map(p, process, &mapping)
                                                                            : processes_refuse_mapping(p, process, &mapping));
    return processes_decide_one(p, process, e->time_ns);
}

/*
 * Applies the filter again, since the process's name or cgroup may have changed. A process that passes now is treated
 * like a new one; for one that does not pass any more the sampler's configuration is removed.
 */
static struct error *select_again(struct processes *p, struct process *process, uint64_t time_ns)
{
    if (!process->in_scope || process->ended_ns)
        return NULL;
    bool passes = processes_passes(p, process);
    if (passes == process->passes)
        return NULL;
    process_select(process, true, passes);
    process->since_ns = UINT64_MAX; /* ticks up to now are not lost: the filter excluded them */
    if (!passes) {
        process_sampling_stop(&p->sampling, process);
        code_mappings_deinit(&process->mappings);
        return NULL;
    }
    TRY(processes_read_mappings(p, process, time_ns));
    return p->options.include_non_python || process_has_python(process) ? processes_configure(p, process) : NULL;
}

static struct error *on_comm(struct processes *p, const struct sideband_event *e)
{
    struct process *process = processes_find(p, e->tgid);

    if (!process || !quota_take(p->quotas, process->slot, QUOTA_events, 1, e->time_ns))
        return NULL;
    if (e->tid == e->tgid)
        snprintf(process->comm, sizeof process->comm, "%.16s", e->text);
    struct thread *t = process_find_thread(process, e->tid);
    if (t)
        snprintf(t->name, sizeof t->name, "%.16s", e->text);
    if (p->events.renamed)
        p->events.renamed(p->events.ctx, process, t, e->time_ns);
    return e->tid == e->tgid ? select_again(p, process, e->time_ns) : NULL;
}

/* Whether no thread is left, except for a first thread that has exited. */
static bool has_gone(uint32_t tgid)
{
    struct procfs_pids threads;
    bool gone = false;

    struct error *err = procfs_threads((pid_t)tgid, &threads);
    if (err) {
        gone = err->code == ERROR_NOT_FOUND;
        error_destroy(err);
        return gone;
    }
    gone = threads.list.count == 0 || (threads.list.count == 1 && threads.list.data[0] == (pid_t)tgid);
    VEC_DEINIT(&threads.list);
    return gone;
}

static void on_exit_event(struct processes *p, const struct sideband_event *e)
{
    struct process *process = processes_find(p, e->tgid);

    if (!process)
        return;
    if (e->tid == e->tgid)
        process->leader_exited = true;
    /* In a process that is not sampled, other threads need no check: if one maps code, the process is added again. */
    if (process->leader_exited && !process->ended_ns && (!process->configured || has_gone(e->tgid)))
        process->ended_ns = e->time_ns;
}

struct error *processes_apply(struct processes *p, const struct sideband_event *e)
{
    switch (e->kind) {
    case SIDEBAND_FORK:
        return on_fork(p, e);
    case SIDEBAND_EXEC:
        return on_exec(p, e);
    case SIDEBAND_MMAP:
        return on_mmap(p, e);
    case SIDEBAND_COMM:
        return on_comm(p, e);
    case SIDEBAND_EXIT:
        on_exit_event(p, e);
        return NULL;
    case SIDEBAND_LOST:
        p->counts.lost += e->lost;
        p->missed = true;
        p->lost_ns = e->time_ns;
        return NULL;
    }
    return NULL;
}

bool processes_matters(struct processes *p, const struct sideband_event *e)
{
    const struct process *process = processes_find(p, e->kind == SIDEBAND_FORK ? e->parent_tgid : e->tgid);
    bool all = p->options.whole_host;

    switch (e->kind) {
    case SIDEBAND_FORK: /* the sampler has given the child what its parent had; its exec is told by its own event */
        return !all && e->tgid != e->parent_tgid && process && process->selected;
    case SIDEBAND_EXEC:
        return all || (process && process->in_scope);
    case SIDEBAND_MMAP:
        return e->protection & PROT_EXEC && (process ? process->selected || process->undecided : all);
    case SIDEBAND_COMM:
        return p->options.filter && process && process->in_scope;
    case SIDEBAND_EXIT:
        return process && process->selected && (process->configured || !all) &&
               (e->tid == e->tgid || process->leader_exited);
    case SIDEBAND_LOST:
        return true;
    }
    return true;
}

/* More processes are not looked at one by one. */
#define KNOWN_MAX 64

bool processes_are_known(const struct processes *p)
{
    if (p->options.whole_host || p->live.count > KNOWN_MAX)
        return false;
    for (size_t i = 0; i < p->live.count; i++) {
        const struct process *process = p->live.data[i];
        if (process->selected && !process->ended_ns && !process_has_python(process))
            return false;
    }
    return true;
}

/*
 * Whether the sample was taken while the process called exec. The kernel counts the call some microseconds after it has
 * reported it: until then the sample still has the number of the program before.
 */
static bool is_of_exec(const struct process *process, const struct wire_sample *s)
{
    return process->expected_generation && s->exec_generation + 1 == process->expected_generation;
}

/* So long after an exec was reported it may not be counted yet. */
#define COUNTED_NS (10 * NS_PER_MS)

/*
 * The same where it was not known what number the program before had: the first sample has set it, and is followed by one that
 * has the next number, with no exec between them.
 */
static bool is_counted_now(const struct processes *p, const struct process *process, const struct wire_sample *s)
{
    return process->bound && !process->expected_generation && process->since_ns && process->begun_ns > p->lost_ns &&
           process->start_boottime_ns == s->start_boottime_ns && process->exec_generation + 1 == s->exec_generation &&
           process->bound_by_ns < process->since_ns + COUNTED_NS;
}

/*
 * Whether the process is another image than the one in the table: the side-band lost an exec, or a new process with this
 * pid. The first sample sets the identity in the table, but if an exec came before it, the sampler still has the
 * configuration of the old image, perhaps its parent's. Samples from before the table's entry may well be stale.
 */
static bool is_outdated(const struct processes *p, const struct process *process, const struct wire_sample *s)
{
    if (s->tgid == p->held_tgid && !p->lost_ns)
        return false; /* it is pycap's own program still, and what it becomes is told */
    if (process->bound && (process->start_boottime_ns != s->start_boottime_ns ||
                           (process->exec_generation != s->exec_generation && !is_of_exec(process, s))))
        return true;
    return s->flags & WIRE_STALE && s->time_ns > process->begun_ns;
}

struct error *processes_of_sample(struct processes *p, const struct wire_sample *s, struct process **out)
{
    struct process *process = processes_find(p, s->tgid);

    *out = NULL;
    if (process && is_counted_now(p, process, s))
        process->exec_generation = process->expected_generation = s->exec_generation;
    if (process && is_outdated(p, process, s)) {
        bool in_scope = process->in_scope;
        TRY(processes_read(p, s->tgid, in_scope, s->time_ns, &process));
    } else if (!process && (p->options.whole_host || p->missed || p->rescan.running)) {
        TRY(processes_read(p, s->tgid, p->options.whole_host, s->time_ns, &process));
    }
    if (process && process->selected && (p->lost_ns || process->unsure))
        TRY(processes_recheck(p, process, s->time_ns));
    if (process)
        see_user(p, process, s);
    if (process && !process->bound) {
        process->bound = true;
        process->bound_by_ns = s->time_ns;
        process->start_boottime_ns = s->start_boottime_ns;
        process->exec_generation = is_of_exec(process, s) ? process->expected_generation : s->exec_generation;
    }
    *out = process;
    return NULL;
}

/* Asks a process again that was late: a wait of 50 ms at most (errand.h), once in a second. */
static struct error *ask_again(struct processes *p, uint64_t time_ns)
{
    for (size_t i = 0; i < p->live.count; i++) {
        struct process *process = p->live.data[i];
        if (!process->held_up || process->ended_ns || !process->selected || time_ns < process->again_ns)
            continue;
        TRY(processes_read_mappings(p, process, time_ns));
        if (process->held_up)
            break;
        if (p->options.include_non_python || process_has_python(process))
            TRY(processes_configure(p, process));
    }
    return NULL;
}

struct error *processes_reap(struct processes *p, uint64_t time_ns)
{
    TRY(ask_again(p, time_ns));
    TRY(processes_decide(p, time_ns));
    /* No event reports a move into another cgroup. */
    if (p->options.filter && filter_is_by_cgroup(p->options.filter) && time_ns - p->filtered_ns > FILTER_AGAIN_NS) {
        p->filtered_ns = time_ns;
        for (size_t i = 0; i < p->live.count; i++)
            TRY(select_again(p, p->live.data[i], time_ns));
    }
    for (uint32_t i = 0; i < p->live.count;) {
        struct process *process = p->live.data[i];
        /*
         * A process may start threads for ever. Forgotten ones are added, and their names read, when they are sampled
         * again.
         */
        if (process->threads.count > THREADS_MAX) {
            if (p->events.threads_forgotten)
                p->events.threads_forgotten(p->events.ctx, process);
            process_forget_threads(process);
        }
        if (process->leader_exited && !process->ended_ns && has_gone(process->tgid))
            process->ended_ns = time_ns;
        if (!process->ended_ns && processes_choose_python(p, process))
            TRY(processes_configure(p, process));
        if (process->unopened && process->selected && !process->python && !process->ended_ns)
            TRY(processes_open_again(p, process, time_ns));
        if (process->ended_ns && time_ns - process->ended_ns > LINGER_NS)
            processes_drop(p, process, process->ended_ns);
        else
            i++;
    }
    return NULL;
}

bool processes_need_publishing(const struct processes *p)
{
    return p->sampling.changed.count;
}

uint64_t processes_publish_due(const struct processes *p)
{
    return p->sampling.changed.count ? p->sampling.due_ns : UINT64_MAX;
}

struct error *processes_publish(struct processes *p, uint64_t time_ns)
{
    return process_sampling_publish(&p->sampling, time_ns);
}
