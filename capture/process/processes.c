/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/process/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/process/processes_state.h"
#include "capture/host/procfs.h"
#include "formats/base/clock.h"

/* A process is kept for a while after its end: the kernel still works for it, and is sampled. */
#define LINGER_NS NS_PER_S
/* How often cgroups are read again where the filter wants them. */
#define FILTER_AGAIN_NS (5 * NS_PER_S)

/* More threads than that of a process are not remembered. */
#define THREADS_MAX 4096

static void no_ended(void *ctx, struct process *p, uint64_t time_ns)
{
    (void)ctx, (void)p, (void)time_ns;
}

static void no_mapped(void *ctx, struct process *p, struct code_mapping *m)
{
    (void)ctx, (void)p, (void)m;
}

static void no_renamed(void *ctx, struct process *p, struct thread *t, uint64_t time_ns)
{
    (void)ctx, (void)p, (void)t, (void)time_ns;
}

struct error *processes_create(const struct processes_options *options, struct modules *modules, struct processes **out)
{
    struct processes *p = calloc(1, sizeof *p);

    if (!p)
        return error_no_memory();
    p->options = *options;
    p->modules = modules;
    if (options->tables) {
        uint32_t count;
        p->wire_mappings = sampler_mappings(options->sampler, &count);
        if (!extents_init(&p->mapping_space, count)) {
            free(p);
            return error_no_memory();
        }
    }
    p->events = (struct processes_events){.mapped = no_mapped, .ended = no_ended, .renamed = no_renamed};
    *out = p;
    return NULL;
}

void processes_set_events(struct processes *p, const struct processes_events *events)
{
    p->events = *events;
}

const char *process_unopened(const struct process *p)
{
    for (size_t i = 0; i < p->mappings.count; i++) {
        const struct code_mapping *m = &p->mappings.data[i];
        if (m->looked_up && !code_mapping_is_anonymous(m) && (!m->module || m->module->unreadable))
            return m->path;
    }
    return NULL;
}

static void threads_deinit(struct process *p)
{
    map_deinit(&p->thread_index);
    for (size_t i = 0; i < p->threads.count; i++)
        free(p->threads.data[i].python_name);
    VEC_DEINIT(&p->threads);
}

static void process_destroy(struct process *p)
{
    if (!p)
        return;
    code_mappings_deinit(&p->mappings);
    threads_deinit(p);
    intern_deinit(&p->codes.keys);
    VEC_DEINIT(&p->codes.index);
    intern_deinit(&p->stacks.keys);
    VEC_DEINIT(&p->stacks.stack);
    intern_deinit(&p->native.keys);
    VEC_DEINIT(&p->native.stack);
    perf_map_file_deinit(&p->perf_map);
    free(p->exe);
    free(p);
}

void processes_destroy(struct processes *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->live.count; i++)
        process_destroy(p->live.data[i]);
    VEC_DEINIT(&p->live);
    extents_deinit(&p->mapping_space);
    VEC_DEINIT(&p->dirty);
    map_deinit(&p->by_tgid);
    free(p);
}

struct processes_counts processes_counts(const struct processes *p)
{
    return p->counts;
}

struct process *processes_find(struct processes *p, uint32_t tgid)
{
    uint64_t *index = map_get(&p->by_tgid, tgid);

    return index ? p->live.data[*index] : NULL;
}

struct process *processes_next(struct processes *p, uint32_t *cursor)
{
    return *cursor < p->live.count ? p->live.data[(*cursor)++] : NULL;
}

/* Takes it out of the table; the last one moves into its place. */
static void drop(struct processes *p, struct process *process, uint64_t time_ns)
{
    uint64_t *index = map_get(&p->by_tgid, process->tgid);

    if (!index || p->live.data[*index] != process)
        return;
    uint64_t at = *index;
    p->events.ended(p->events.ctx, process, time_ns);
    if (process->counted)
        p->counts.python--;
    if (process->configured && p->options.sampler)
        sampler_remove_process(p->options.sampler, process->tgid);
    extents_give(&p->mapping_space, process->mapping_start, process->mapping_count, time_ns);
    map_remove(&p->by_tgid, process->tgid);
    struct process *last = p->live.data[--p->live.count];
    if (last != process) {
        p->live.data[at] = last;
        map_set(&p->by_tgid, last->tgid, at);
    }
    process_destroy(process);
}

struct error *processes_begin(struct processes *p, uint32_t tgid, uint64_t time_ns, struct process **out)
{
    struct process *old = processes_find(p, tgid);

    if (old)
        drop(p, old, old->ended_ns ? old->ended_ns : time_ns);
    struct process *process = calloc(1, sizeof *process);
    if (!process)
        return error_no_memory();
    process->tgid = tgid;
    process->since_ns = time_ns;
    if (!VEC_PUSH(&p->live, process)) {
        free(process);
        return error_no_memory();
    }
    if (!map_set(&p->by_tgid, tgid, p->live.count - 1)) {
        p->live.count--;
        free(process);
        return error_no_memory();
    }
    *out = process;
    return NULL;
}

void process_select(struct process *process, bool in_scope, bool passes)
{
    process->in_scope = in_scope;
    process->passes = passes;
    process->selected = in_scope && passes;
}

struct thread *process_thread(struct process *p, uint32_t tid)
{
    uint64_t *index = map_get(&p->thread_index, tid);

    if (index)
        return &p->threads.data[*index];
    struct thread t = {.tid = tid};
    if (!procfs_comm((pid_t)p->tgid, (pid_t)tid, t.name))
        memcpy(t.name, p->comm, sizeof t.name);
    /* Room first: the index must not lead behind the end. */
    if (!VEC_RESERVE(&p->threads, p->threads.count + 1) || !map_set(&p->thread_index, tid, p->threads.count))
        return NULL;
    p->threads.data[p->threads.count++] = t;
    return &p->threads.data[p->threads.count - 1];
}

static struct error *on_fork(struct processes *p, const struct sideband_event *e)
{
    if (e->tgid == e->parent_tgid)
        return NULL; /* a thread: made when it is sampled */
    struct process *parent = processes_find(p, e->parent_tgid), *child;
    TRY(processes_begin(p, e->tgid, e->time_ns, &child));
    child->parent_tgid = e->parent_tgid;
    bool in_scope = p->options.whole_host || (parent && parent->in_scope && p->options.follow);
    /* It has its parent's name and cgroup. */
    process_select(child, in_scope, parent ? parent->passes : filter_passes(p->options.filter, e->tgid, ""));
    if (!parent)
        return NULL;
    memcpy(child->comm, parent->comm, sizeof child->comm);
    if (parent->exe)
        child->exe = strdup(parent->exe);
    child->glibc = parent->glibc;
    child->switches_stacks = parent->switches_stacks;
    child->name_hints = parent->name_hints;
    child->asyncio = parent->asyncio;
    child->python = parent->python;
    child->python_bias = parent->python_bias;
    if (!code_mappings_copy(&child->mappings, &parent->mappings, e->time_ns))
        return error_no_memory();
    if (!process_has_python(child) && !parent->configured)
        return NULL;
    if (child->selected)
        return processes_configure(p, child);
    /* The BPF side has handed the configuration on: it is not wanted. */
    if (p->options.sampler)
        sampler_remove_process(p->options.sampler, child->tgid);
    return NULL;
}

static struct error *on_exec(struct processes *p, const struct sideband_event *e)
{
    struct process *old = processes_find(p, e->tgid), *process;
    bool in_scope = old ? old->in_scope : p->options.whole_host;
    uint32_t parent = old ? old->parent_tgid : 0;

    TRY(processes_begin(p, e->tgid, e->time_ns, &process));
    processes_disinherit(p, e->tgid);
    process->parent_tgid = parent;
    snprintf(process->comm, sizeof process->comm, "%.16s", e->text);
    process_select(process, in_scope, in_scope && filter_passes(p->options.filter, e->tgid, process->comm));
    return p->options.include_non_python ? processes_configure(p, process) : NULL;
}

static struct error *on_mmap(struct processes *p, const struct sideband_event *e)
{
    struct process *process = processes_find(p, e->tgid);

    if (!(e->protection & PROT_EXEC))
        return NULL;
    if (!process) {
        TRY(processes_read(p, e->tgid, p->options.whole_host, e->time_ns, &process));
        if (!process || !process->forbidden)
            return NULL;
    }
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
        .build_id_len = e->build_id_len,
        .path = (char *)e->text,
    };
    memcpy(mapping.build_id, e->build_id, sizeof mapping.build_id);
    return processes_map(p, process, &mapping);
}

/*
 * Its name or its cgroup may have changed. One that passes now is looked at like a new one; of one that does not any
 * more the sampler forgets.
 */
static struct error *select_again(struct processes *p, struct process *process)
{
    bool passes = filter_passes(p->options.filter, process->tgid, process->comm);

    if (!process->in_scope || process->ended_ns || passes == process->passes)
        return NULL;
    process_select(process, true, passes);
    process->since_ns = UINT64_MAX; /* ticks up to now were not wanted */
    if (!passes) {
        if (process->configured && p->options.sampler)
            sampler_remove_process(p->options.sampler, process->tgid);
        if (process->counted)
            p->counts.python--;
        process->configured = process->counted = false;
        return NULL;
    }
    for (size_t i = 0; i < process->mappings.count; i++) {
        if (!process->mappings.data[i].looked_up)
            TRY(processes_look_at(p, process, &process->mappings.data[i]));
    }
    return p->options.include_non_python || process_has_python(process) ? processes_configure(p, process) : NULL;
}

static struct error *on_comm(struct processes *p, const struct sideband_event *e)
{
    struct process *process = processes_find(p, e->tgid);

    if (!process)
        return NULL;
    if (e->tid == e->tgid)
        snprintf(process->comm, sizeof process->comm, "%.16s", e->text);
    uint64_t *index = map_get(&process->thread_index, e->tid);
    struct thread *t = index ? &process->threads.data[*index] : NULL;
    if (t)
        snprintf(t->name, sizeof t->name, "%.16s", e->text);
    p->events.renamed(p->events.ctx, process, t, e->time_ns);
    return e->tid == e->tgid ? select_again(p, process) : NULL;
}

/* Whether any thread but a dead leader is left. */
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
    /* Where nothing is sampled it does not matter whether other threads go on: what they map brings the process back. */
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
        return NULL;
    }
    return NULL;
}

struct error *processes_of_sample(struct processes *p, const struct wire_sample *s, struct process **out)
{
    struct process *process = processes_find(p, s->tgid);

    *out = NULL;
    if (process && process->bound &&
        (process->start_boottime_ns != s->start_boottime_ns || process->exec_generation != s->exec_generation)) {
        /* An exec, or a new process with this number, that the side-band did not tell of. */
        bool in_scope = process->in_scope;
        TRY(processes_read(p, s->tgid, in_scope, s->time_ns, &process));
    } else if (!process) {
        TRY(processes_read(p, s->tgid, p->options.whole_host, s->time_ns, &process));
    }
    if (process && !process->bound) {
        process->bound = true;
        process->start_boottime_ns = s->start_boottime_ns;
        process->exec_generation = s->exec_generation;
    }
    *out = process;
    return NULL;
}

uint64_t processes_codes_bytes(const struct processes *p)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < p->live.count; i++) {
        const struct process_codes *c = &p->live.data[i]->codes;
        bytes += intern_bytes(&c->keys) + c->index.cap * sizeof *c->index.data;
    }
    return bytes;
}

void processes_forget_codes(struct processes *p)
{
    for (uint32_t i = 0; i < p->live.count; i++) {
        intern_deinit(&p->live.data[i]->codes.keys);
        VEC_DEINIT(&p->live.data[i]->codes.index);
    }
}

struct error *processes_reap(struct processes *p, uint64_t time_ns)
{
    /* Nothing tells of a move into another cgroup. */
    if (p->options.filter && p->options.filter->cgroups.count && time_ns - p->filtered_ns > FILTER_AGAIN_NS) {
        p->filtered_ns = time_ns;
        for (size_t i = 0; i < p->live.count; i++)
            TRY(select_again(p, p->live.data[i]));
    }
    for (uint32_t i = 0; i < p->live.count;) {
        struct process *process = p->live.data[i];
        /* A process may start threads for ever: their names are read again when they are met again. */
        if (process->threads.count > THREADS_MAX)
            threads_deinit(process);
        if (process->leader_exited && !process->ended_ns && has_gone(process->tgid))
            process->ended_ns = time_ns;
        if (process->ended_ns && time_ns - process->ended_ns > LINGER_NS)
            drop(p, process, process->ended_ns);
        else
            i++;
    }
    return NULL;
}
