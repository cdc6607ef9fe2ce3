/* SPDX-License-Identifier: Apache-2.0 */
/* A process may end while its files in /proc are read: no read treats that as an error. */
#include "capture/process/processes_proc.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/host/procfs.h"
#include "formats/base/clock.h"

/* The unit of start times in /proc (USER_HZ). */
#define CLOCK_TICK_NS (10 * NS_PER_MS)

static struct error *add_mappings(struct processes *p, struct process *process, const struct procfs_mappings *maps,
                                  uint64_t time_ns)
{
    for (size_t i = 0; i < maps->list.count; i++) {
        const struct procfs_mapping *m = &maps->list.data[i];
        if (!(m->protection & PROT_EXEC))
            continue;
        struct code_mapping mapping = {
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
            .build_id_len = m->build_id_len,
        };
        memcpy(mapping.build_id, m->build_id, sizeof mapping.build_id);
        TRY(processes_map(p, process, &mapping));
    }
    return NULL;
}

struct error *processes_read(struct processes *p, uint32_t tgid, bool in_scope, uint64_t time_ns, struct process **out)
{
    struct procfs_status status;
    struct procfs_mappings maps = {0};
    struct process *process;

    *out = NULL;
    bool forbidden = false;
    struct error *err = procfs_status((pid_t)tgid, &status);
    if (!err) {
        err = procfs_mappings((pid_t)tgid, &maps);
        forbidden = err && err->code == ERROR_PERMISSION;
    }
    if (forbidden) { /* it exists, and the side-band reports what it maps from now on */
        error_destroy(err);
        err = NULL;
    }
    if (err) {
        if (err->code == ERROR_NO_MEMORY)
            return err;
        if (err->code == ERROR_NOT_FOUND)
            p->counts.gone++;
        error_destroy(err);
        return NULL;
    }
    const struct process *old = processes_find(p, tgid);
    bool counted = old && old->forbidden;
    err = processes_begin(p, tgid, time_ns, &process);
    if (!err) {
        process_sampling_disinherit(&p->sampling, tgid);
        process->since_ns = 0;
        if (!in_scope && p->missed) {
            const struct process *parent = processes_find(p, status.parent_tgid);
            in_scope = parent && parent->in_scope && p->options.follow;
        }
        process->parent_tgid = status.parent_tgid;
        process->ns_tgid = status.ns_tgid;
        memcpy(process->comm, status.comm, sizeof process->comm);
        process_select(process, in_scope, in_scope && filter_passes(p->options.filter, tgid, process->comm));
        processes_set_owner(p, process, status.uid);
        process->forbidden = forbidden;
        p->counts.forbidden += forbidden && process->selected && !counted;
    }
    if (!err)
        err = add_mappings(p, process, &maps, time_ns);
    procfs_mappings_deinit(&maps);
    if (!err && p->options.include_non_python)
        err = processes_configure(p, process);
    if (!err)
        *out = process;
    return err;
}

struct error *processes_scan(struct processes *p, const uint32_t *pids, uint32_t pid_count)
{
    struct process *process;

    for (uint32_t i = 0; i < pid_count; i++)
        TRY(processes_read(p, pids[i], true, 0, &process));
    struct procfs_pids all;
    TRY(procfs_pids(&all));
    struct error *err = NULL;
    for (size_t i = 0; !err && i < all.list.count; i++) {
        if (!processes_find(p, (uint32_t)all.list.data[i]))
            err = processes_read(p, (uint32_t)all.list.data[i], p->options.whole_host, 0, &process);
    }
    VEC_DEINIT(&all.list);
    return err;
}

/* ---- when events were lost ---- */

/* Whether a process exists: it is in the table, or in /proc with its events still to come. */
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

/* Updates a process of the table from /proc. */
static struct error *reread(struct processes *p, struct process *process, uint64_t time_ns)
{
    struct procfs_mappings maps = {0};
    struct procfs_status status;

    struct error *err = procfs_status((pid_t)process->tgid, &status);
    bool same = !err && (!process->bound || process->start_boottime_ns / CLOCK_TICK_NS == status.start_ticks);
    if (!err && same) /* if they may not be read any more, keep those that are known */
        err = procfs_mappings((pid_t)process->tgid, &maps);
    if (!err && (!same || !(process->python || p->options.include_non_python))) {
        bool in_scope = process->in_scope && (same || p->options.whole_host);
        procfs_mappings_deinit(&maps);
        return processes_read(p, process->tgid, in_scope, time_ns, &process);
    }
    if (!err)
        err = add_mappings(p, process, &maps, time_ns);
    procfs_mappings_deinit(&maps);
    if (err && err->code != ERROR_NO_MEMORY) { /* it is ending */
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
            err = processes_read(p, tgid, p->options.whole_host, time_ns, &process);
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
