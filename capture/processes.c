/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "capture/extents.h"
#include "capture/procfs.h"

/* pthread_setspecific()'s first 32 values lie in glibc's thread descriptor on x86-64: {sequence, value} from 0x310 on (2.17 to 2.43). */
#define GLIBC_KEY_VALUES 0x318

/* A process is kept for a while after its end: the kernel still works for it, and is sampled. */
#define LINGER_NS UINT64_C(1000000000)
/* A sample that is being taken may read what was given back less long ago. */
#define SETTLE_NS UINT64_C(50000000)
/* How often cgroups are read again where the filter wants them. */
#define FILTER_AGAIN_NS UINT64_C(5000000000)

#define THREADS_MAX 4096
/* /proc tells a process's start in these (USER_HZ). */
#define CLOCK_TICK_NS UINT64_C(10000000)

struct processes {
    struct processes_options options;
    struct processes_events events;
    struct modules *modules;
    struct map by_tgid; /* -> index of live */
    VEC(struct process *) live;
    struct processes_counts counts;
    struct wire_mapping *wire_mappings; /* the sampler's, NULL without tables */
    struct extents mapping_space;
    uint64_t filtered_ns; /* when all were last held against the filter */
    VEC(uint32_t) dirty; /* processes whose mappings have changed */
    bool missed;         /* events were lost since /proc was read */
};

static void no_ended(void *ctx, struct process *p, uint64_t time_ns)
{
    (void)ctx, (void)p, (void)time_ns;
}

static void no_mapped(void *ctx, struct process *p, struct mapping *m)
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

static void process_destroy(struct process *p)
{
    if (!p)
        return;
    mappings_deinit(&p->mappings);
    map_deinit(&p->thread_index);
    for (size_t i = 0; i < p->threads.count; i++)
        free(p->threads.data[i].python_name);
    VEC_DEINIT(&p->threads);
    intern_deinit(&p->codes.keys);
    VEC_DEINIT(&p->codes.index);
    intern_deinit(&p->stacks.keys);
    VEC_DEINIT(&p->stacks.stack);
    intern_deinit(&p->native.keys);
    VEC_DEINIT(&p->native.stack);
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

static struct error *add(struct processes *p, uint32_t tgid, uint64_t time_ns, struct process **out)
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

static void select_process(struct process *process, bool in_scope, bool passes)
{
    process->in_scope = in_scope;
    process->passes = passes;
    process->selected = in_scope && passes;
}

/*
 * For a process that begins otherwise than by the fork that the sampler saw: what it inherited then names an image that
 * may long be gone, and would be taken for what the sampler has learnt of this one.
 */
static void disinherit(struct processes *p, uint32_t tgid)
{
    struct wire_process now;

    if (p->options.sampler && sampler_get_process(p->options.sampler, tgid, &now))
        sampler_remove_process(p->options.sampler, tgid);
}

struct thread *process_thread(struct process *p, uint32_t tid)
{
    uint64_t *index = map_get(&p->thread_index, tid);

    if (index)
        return &p->threads.data[*index];
    struct thread t = {.tid = tid};
    if (!procfs_comm((pid_t)p->tgid, (pid_t)tid, t.name))
        memcpy(t.name, p->comm, sizeof t.name);
    if (!map_set(&p->thread_index, tid, p->threads.count) || !VEC_PUSH(&p->threads, t))
        return NULL;
    return &p->threads.data[p->threads.count - 1];
}

/* Lays the process's mappings into the sampler's array, in a new place: a sample may be reading the old one. */
static struct error *lay_mappings(struct processes *p, struct process *process, uint64_t time_ns)
{
    uint32_t start, count = (uint32_t)process->mappings.count;

    if (!p->options.tables)
        return NULL;
    if (!extents_take(&p->mapping_space, count, &start)) {
        p->counts.mappings_refused++;
        return NULL;
    }
    TRY(sampler_reach(p->options.sampler, p->wire_mappings + start, count * sizeof *p->wire_mappings));
    for (uint32_t i = 0; i < count; i++) {
        struct error *err = tables_map(p->options.tables, (pid_t)process->tgid, &process->mappings.data[i], time_ns,
                                       process->python != NULL, &p->wire_mappings[start + i]);
        if (err) {
            extents_give(&p->mapping_space, start, count, time_ns);
            return err;
        }
    }
    extents_give(&p->mapping_space, process->mapping_start, process->mapping_count, time_ns);
    process->mapping_start = start;
    process->mapping_count = count;
    p->counts.laid_ns = time_ns;
    return NULL;
}

/* The sampler's copy is made anew once all that has come is applied: libraries are mapped in droves. */
static struct error *mappings_changed(struct processes *p, struct process *process)
{
    if (!p->options.tables || process->mappings_dirty)
        return NULL;
    process->mappings_dirty = true;
    return VEC_PUSH(&p->dirty, process->tgid) ? NULL : error_no_memory();
}

/* Whether the process has an interpreter whose frames can be walked. */
static bool has_python(const struct process *process)
{
    return process->python && !process->python->python.refused;
}

/* A variable's place as the walk wants it; none where the linker's part in it is not known. */
static uint32_t tls_place(const struct py_tls *tls, uint64_t bias, uint64_t *offset, uint64_t *where)
{
    if (tls->kind == PY_TLS_MODULE && !tls->module_id_vaddr)
        return PY_TLS_NONE;
    *offset = (uint64_t)tls->offset;
    if (tls->kind == PY_TLS_MODULE)
        *where = tls->module_id_vaddr + bias;
    else if (tls->kind == PY_TLS_SLOT || tls->kind == PY_TLS_DESCRIPTOR)
        *where = tls->slot_vaddr + bias;
    return tls->kind;
}

void process_describe_python(const struct process *p, struct wire_process *out)
{
    const struct py_image *image = &p->python->python;
    uint64_t bias = p->python_bias;

    out->runtime = image->runtime_vaddr + bias;
    out->code_type = image->code_type_vaddr + bias;
    out->tls_kind = tls_place(&image->tls_tstate, bias, &out->tls_offset, &out->tls_module);
    out->gilstate_kind = tls_place(&image->tls_gilstate, bias, &out->gilstate_offset, &out->gilstate_module);
    out->interpreters = image->interpreters_vaddr ? image->interpreters_vaddr + bias : 0;
    out->thread_key = image->thread_key_vaddr ? image->thread_key_vaddr + bias : 0;
    out->key_slots = p->glibc ? GLIBC_KEY_VALUES : 0;
    if (image->version_hex >= 0x030e0000) {
        out->running_task = p->asyncio.running_task;
        out->task_name = p->asyncio.task_name;
        out->task_is_task = p->asyncio.task_is_task;
        out->task_size = p->asyncio.task_size;
    }
}

/* What the sampler needs to walk the process's Python frames. */
static struct error *configure_python(struct processes *p, struct process *process, struct wire_process *wire)
{
    TRY(sampler_layout(p->options.sampler, &process->python->python.layout, &process->layout_index));
    process_describe_python(process, wire);
    wire->layout = process->layout_index;
    return NULL;
}

bool process_python(const struct process *process, struct wire_process *wire)
{
    if (!has_python(process))
        return false;
    process_describe_python(process, wire);
    return true;
}

static void count_python(struct processes *p, struct process *process)
{
    if (process->counted || !has_python(process))
        return;
    process->counted = true;
    p->counts.python++;
    p->counts.seen_python++;
}

bool processes_wants(const struct processes *p, const struct process *process)
{
    return process->selected && (p->options.any || has_python(process));
}

/*
 * Ticks that went by unseen before a Python process was known. Those before its interpreter was mapped are none: there
 * can't be more than the CPUs had ticks since then.
 */
static uint64_t late_ticks(struct processes *p, const struct process *process)
{
    uint64_t ticks = sampler_late_ticks(p->options.sampler, process->tgid, process->since_ns);
    struct timespec now;

    if (!ticks || !process->python_since_ns)
        return ticks;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t most = sampler_most_ticks(p->options.sampler, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec -
                                                               process->python_since_ns);
    return ticks < most ? ticks : most;
}

/* Hands the process to the sampler, as far as it is known. */
static struct error *configure(struct processes *p, struct process *process)
{
    struct wire_process wire = {0}, now;

    if (!process->selected)
        return NULL;
    count_python(p, process);
    if (!p->options.sampler)
        return NULL;
    /* What the sampler has learnt of the image stays, also what it inherited at a fork. */
    if (sampler_get_process(p->options.sampler, process->tgid, &now) &&
        (process->configured || now.flags & WIRE_PROCESS_INHERITED)) {
        wire.start_boottime_ns = now.start_boottime_ns;
        wire.exec_generation_1 = now.exec_generation_1;
    }
    if (has_python(process))
        TRY(configure_python(p, process, &wire));
    if (process->switches_stacks)
        wire.flags |= WIRE_PROCESS_GREENLETS;
    wire.mapping_start = process->mapping_start;
    wire.mapping_count = process->mapping_count;
    TRY(sampler_set_process(p->options.sampler, process->tgid, &wire));
    if (has_python(process) && !process->configured)
        p->counts.late_ticks += late_ticks(p, process);
    if (process->configured)
        return NULL;
    process->configured = true;
    return mappings_changed(p, process);
}

struct error *processes_sampled(struct processes *p, struct process *process)
{
    return configure(p, process);
}

/* Finds the module behind a mapping, and whether it makes the process one to sample. */
static struct error *look_at(struct processes *p, struct process *process, struct mapping *m)
{
    struct module_mapping key = {
        .pid = (pid_t)process->tgid,
        .address = m->address,
        .length = m->length,
        .path = m->path,
        .build_id = m->build_id,
        .build_id_len = m->build_id_len,
    };

    m->looked_up = true;
    TRY(modules_find(p->modules, &key, &m->module));
    if (!m->module)
        return NULL;
    if (m->module->python.switches_stacks && !process->switches_stacks) {
        process->switches_stacks = true;
        if (has_python(process))
            TRY(configure(p, process));
    }
    if (m->module->python.asyncio.running_task && !process->asyncio.running_task) {
        process->asyncio = m->module->python.asyncio;
        if (has_python(process))
            TRY(configure(p, process));
    }
    if (m->module->is_glibc && !process->glibc) {
        process->glibc = true;
        if (has_python(process))
            TRY(configure(p, process));
    }
    if (m->module->python.is_python && !process->python) {
        if (!m->module->python.refused && !module_bias(m->module, m->address, m->file_offset, &process->python_bias))
            return NULL;
        process->python = m->module;
        process->python_since_ns = process->since_ns ? m->time_ns : 0;
        if (m->module->python.refused)
            p->counts.refused++;
        else
            TRY(configure(p, process));
    }
    return NULL;
}

static struct error *add_mapping(struct processes *p, struct process *process, const struct mapping *m)
{
    size_t at;

    if (!m->length || m->address + m->length < m->address)
        return NULL;
    if (!mappings_add(&process->mappings, m, &at))
        return error_no_memory();
    /* Processes that will not be sampled cost no looking at files. */
    if (process->selected)
        TRY(look_at(p, process, &process->mappings.data[at]));
    if (process->configured)
        TRY(mappings_changed(p, process));
    p->events.mapped(p->events.ctx, process, &process->mappings.data[at]);
    return NULL;
}

/* Adds a mapping unless it is there: told twice, by /proc and by the side-band. */
static struct error *add_mapping_once(struct processes *p, struct process *process, const struct mapping *mapping)
{
    size_t at = mappings_first_behind(&process->mappings, mapping->address);

    if (at < process->mappings.count) {
        const struct mapping *m = &process->mappings.data[at];
        if (m->address == mapping->address && m->length == mapping->length && m->file_offset == mapping->file_offset &&
            !strcmp(m->path, mapping->path))
            return NULL;
    }
    return add_mapping(p, process, mapping);
}

static struct error *add_mappings(struct processes *p, struct process *process, const struct procfs_mappings *maps,
                                  uint64_t time_ns)
{
    for (size_t i = 0; i < maps->list.count; i++) {
        const struct procfs_mapping *m = &maps->list.data[i];
        if (!(m->protection & PROT_EXEC))
            continue;
        struct mapping mapping = {
            .time_ns = time_ns,
            .address = m->start,
            .length = m->end - m->start,
            .file_offset = m->file_offset,
            .protection = m->protection,
            .map_flags = m->shared ? MAP_SHARED : MAP_PRIVATE,
            .device_major = m->device_major,
            .device_minor = m->device_minor,
            .inode = m->inode,
            .path = m->path,
        };
        TRY(add_mapping_once(p, process, &mapping));
    }
    return NULL;
}

/* A process that is there already, from /proc. One that goes meanwhile is none. */
static struct error *read_process(struct processes *p, uint32_t tgid, bool in_scope, uint64_t time_ns, struct process **out)
{
    struct procfs_status status;
    struct procfs_mappings maps = {0};
    struct process *process;

    *out = NULL;
    struct error *err = procfs_status((pid_t)tgid, &status);
    if (!err)
        err = procfs_mappings((pid_t)tgid, &maps);
    if (err) {
        if (err->code == ERROR_NO_MEMORY)
            return err;
        if (err->code == ERROR_NOT_FOUND)
            p->counts.gone++;
        error_destroy(err);
        return NULL;
    }
    err = add(p, tgid, time_ns, &process);
    if (!err) {
        disinherit(p, tgid);
        process->since_ns = 0;
        if (!in_scope && p->missed) {
            const struct process *parent = processes_find(p, status.parent_tgid);
            in_scope = parent && parent->in_scope && p->options.follow;
        }
        process->parent_tgid = status.parent_tgid;
        process->ns_tgid = status.ns_tgid;
        memcpy(process->comm, status.comm, sizeof process->comm);
        select_process(process, in_scope, in_scope && filter_passes(p->options.filter, tgid, process->comm));
    }
    if (!err)
        err = add_mappings(p, process, &maps, time_ns);
    procfs_mappings_deinit(&maps);
    if (!err && p->options.any)
        err = configure(p, process);
    if (!err)
        *out = process;
    return err;
}

struct error *processes_add(struct processes *p, uint32_t tgid, uint64_t time_ns, struct process **out)
{
    return read_process(p, tgid, true, time_ns, out);
}

struct error *processes_scan(struct processes *p, const uint32_t *pids, uint32_t pid_count)
{
    struct process *process;

    for (uint32_t i = 0; i < pid_count; i++)
        TRY(read_process(p, pids[i], true, 0, &process));
    struct procfs_pids all;
    TRY(procfs_pids(&all));
    struct error *err = NULL;
    for (size_t i = 0; !err && i < all.list.count; i++) {
        if (!processes_find(p, (uint32_t)all.list.data[i]))
            err = read_process(p, (uint32_t)all.list.data[i], p->options.all, 0, &process);
    }
    VEC_DEINIT(&all.list);
    return err;
}

static struct error *on_fork(struct processes *p, const struct sideband_event *e)
{
    if (e->tgid == e->parent_tgid)
        return NULL; /* a thread: made when it is sampled */
    struct process *parent = processes_find(p, e->parent_tgid), *child;
    TRY(add(p, e->tgid, e->time_ns, &child));
    child->parent_tgid = e->parent_tgid;
    bool in_scope = p->options.all || (parent && parent->in_scope && p->options.follow);
    /* It has its parent's name and cgroup. */
    select_process(child, in_scope, parent ? parent->passes : filter_passes(p->options.filter, e->tgid, ""));
    if (!parent)
        return NULL;
    memcpy(child->comm, parent->comm, sizeof child->comm);
    if (parent->exe)
        child->exe = strdup(parent->exe);
    child->glibc = parent->glibc;
    child->switches_stacks = parent->switches_stacks;
    child->asyncio = parent->asyncio;
    child->python = parent->python;
    child->python_bias = parent->python_bias;
    if (!mappings_copy(&child->mappings, &parent->mappings, e->time_ns))
        return error_no_memory();
    if (!has_python(child) && !parent->configured)
        return NULL;
    if (child->selected)
        return configure(p, child);
    /* The BPF side has handed the configuration on: it is not wanted. */
    if (p->options.sampler)
        sampler_remove_process(p->options.sampler, child->tgid);
    return NULL;
}

static struct error *on_exec(struct processes *p, const struct sideband_event *e)
{
    struct process *old = processes_find(p, e->tgid), *process;
    bool in_scope = old ? old->in_scope : p->options.all;
    uint32_t parent = old ? old->parent_tgid : 0;

    TRY(add(p, e->tgid, e->time_ns, &process));
    disinherit(p, e->tgid);
    process->parent_tgid = parent;
    snprintf(process->comm, sizeof process->comm, "%.16s", e->text);
    select_process(process, in_scope, in_scope && filter_passes(p->options.filter, e->tgid, process->comm));
    return p->options.any ? configure(p, process) : NULL;
}

static struct error *on_mmap(struct processes *p, const struct sideband_event *e)
{
    struct process *process = processes_find(p, e->tgid);

    if (!(e->protection & PROT_EXEC))
        return NULL;
    if (!process) {
        struct process *found;
        return read_process(p, e->tgid, p->options.all, e->time_ns, &found);
    }
    struct mapping mapping = {
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
    return add_mapping_once(p, process, &mapping);
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
    select_process(process, true, passes);
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
            TRY(look_at(p, process, &process->mappings.data[i]));
    }
    return p->options.any || has_python(process) ? configure(p, process) : NULL;
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

struct error *processes_settle(struct processes *p, uint64_t time_ns)
{
    if (!p->dirty.count)
        return NULL;
    extents_settle(&p->mapping_space, time_ns - SETTLE_NS);
    for (size_t i = 0; i < p->dirty.count; i++) {
        struct process *process = processes_find(p, p->dirty.data[i]);
        if (!process || !process->mappings_dirty)
            continue;
        process->mappings_dirty = false;
        if (process->configured) {
            TRY(lay_mappings(p, process, time_ns));
            TRY(configure(p, process));
        }
    }
    p->dirty.count = 0;
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
        TRY(read_process(p, s->tgid, in_scope, s->time_ns, &process));
    } else if (!process) {
        TRY(read_process(p, s->tgid, p->options.all, s->time_ns, &process));
    }
    if (process && !process->bound) {
        process->bound = true;
        process->start_boottime_ns = s->start_boottime_ns;
        process->exec_generation = s->exec_generation;
    }
    *out = process;
    return NULL;
}

void processes_forget_codes(struct processes *p)
{
    for (uint32_t i = 0; i < p->live.count; i++) {
        intern_deinit(&p->live.data[i]->codes.keys);
        VEC_DEINIT(&p->live.data[i]->codes.index);
    }
}

/* A process may start threads for ever: their names are read again when they are met again. */
static void forget_threads(struct process *process)
{
    if (process->threads.count <= THREADS_MAX)
        return;
    map_deinit(&process->thread_index);
    VEC_DEINIT(&process->threads);
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
        forget_threads(process);
        if (process->leader_exited && !process->ended_ns && has_gone(process->tgid))
            process->ended_ns = time_ns;
        if (process->ended_ns && time_ns - process->ended_ns > LINGER_NS)
            drop(p, process, process->ended_ns);
        else
            i++;
    }
    return NULL;
}

/* ---- when events were lost ---- */

/* One that we know, or whose events are still to come. */
static bool is_there(void *ctx, uint32_t tgid)
{
    struct procfs_status status;

    if (processes_find(ctx, tgid))
        return true;
    struct error *err = procfs_status((pid_t)tgid, &status);
    bool gone = err && err->code == ERROR_NOT_FOUND;
    error_destroy(err);
    return !gone;
}

/* Brings a process that is known up to date. */
static struct error *reread(struct processes *p, struct process *process, uint64_t time_ns)
{
    struct procfs_mappings maps = {0};
    struct procfs_status status;

    struct error *err = procfs_status((pid_t)process->tgid, &status);
    bool same = !err && (!process->bound || process->start_boottime_ns / CLOCK_TICK_NS == status.start_ticks);
    if (!err && (!same || !(process->python || p->options.any))) {
        bool in_scope = process->in_scope && (same || p->options.all);
        return read_process(p, process->tgid, in_scope, time_ns, &process);
    }
    if (!err)
        err = procfs_mappings((pid_t)process->tgid, &maps);
    if (!err)
        err = add_mappings(p, process, &maps, time_ns);
    procfs_mappings_deinit(&maps);
    if (err && err->code != ERROR_NO_MEMORY) { /* it is about to go */
        error_destroy(err);
        err = NULL;
    }
    return err;
}

struct error *processes_rescan(struct processes *p, uint64_t time_ns)
{
    struct procfs_pids all;
    struct map there = {0};
    struct process *process;
    struct error *err = NULL;

    if (!p->missed)
        return NULL;
    TRY(procfs_pids(&all));
    for (size_t i = 0; !err && i < all.list.count; i++) {
        uint32_t tgid = (uint32_t)all.list.data[i];
        process = processes_find(p, tgid);
        if (!map_set(&there, tgid, 1))
            err = error_no_memory();
        else if (process)
            err = reread(p, process, time_ns);
        else
            err = read_process(p, tgid, p->options.all, time_ns, &process);
    }
    VEC_DEINIT(&all.list);
    for (uint32_t i = 0; !err && i < p->live.count; i++) {
        process = p->live.data[i];
        if (!process->ended_ns && !map_get(&there, process->tgid))
            process->ended_ns = time_ns;
    }
    map_deinit(&there);
    if (!err && p->options.sampler)
        sampler_prune(p->options.sampler, is_there, p);
    p->missed = false;
    return err;
}
