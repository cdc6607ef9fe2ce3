/* SPDX-License-Identifier: Apache-2.0 */
/* A process may end while its files in /proc are read: no read treats that as an error. */
#include "capture/process/processes_proc.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/host/procfs.h"
#include "capture/host/procfs_maps.h"
#include "formats/base/clock.h"

struct reading {
    struct processes *all;
    struct process *process;
};

/* A process may have hundreds of megabytes of text. */
static bool may_read(void *ctx, size_t len_bytes)
{
    const struct reading *r = ctx;

    return quota_take(r->all->quotas, r->process->slot, QUOTA_maps_bytes, len_bytes, now_ns());
}

struct error *processes_add_mappings(struct processes *p, struct process *process, struct procfs_maps *maps,
                                     uint64_t time_ns, struct address_ranges *seen)
{
    struct reading reading = {p, process};
    struct procfs_mapping m;

    maps->may_read = may_read;
    maps->ctx = &reading;
    while (procfs_maps_next(maps, &m)) {
        struct code_mapping mapping = {
            .time_ns = time_ns,
            .address = m.start,
            .length = m.end - m.start,
            .file_offset = m.file_offset,
            .protection = m.protection,
            .map_flags = m.shared ? MAP_SHARED : MAP_PRIVATE,
            .device_major = m.device_major,
            .device_minor = m.device_minor,
            .inode = m.inode,
            .path = m.path,
            .build_id_len = m.build_id_len,
        };
        memcpy(mapping.build_id, m.build_id, sizeof mapping.build_id);
        TRY(processes_map(p, process, &mapping));
        if (seen && !VEC_PUSH(seen, ((struct address_range){m.start, m.end})))
            return error_no_memory();
    }
    process->read_ns = now_ns();
    return NULL;
}

/* Sets what /proc says of a process that is new in the table. */
static void describe(struct processes *p, struct process *process, const struct procfs_status *status, bool in_scope)
{
    process_sampling_disinherit(&p->sampling, process->tgid);
    process->since_ns = 0;
    if (!in_scope && p->rescan.running) {
        const struct process *parent = processes_find(p, status->parent_tgid);
        in_scope = parent && parent->in_scope && p->options.follow;
    }
    process->parent_tgid = status->parent_tgid;
    process->ns_tgid = status->ns_tgid;
    memcpy(process->comm, status->comm, sizeof process->comm);
    process_select(process, in_scope, in_scope && filter_passes(p->options.filter, process->tgid, process->comm));
    processes_set_owner(p, process, status->uid);
}

struct error *processes_read(struct processes *p, uint32_t tgid, bool in_scope, uint64_t time_ns, struct process **out)
{
    struct procfs_status status;
    struct procfs_maps maps = {.fd = -1};
    struct process *process;

    *out = NULL;
    bool forbidden = false;
    struct error *err = procfs_status((pid_t)tgid, &status);
    if (!err) {
        err = procfs_maps_open((pid_t)tgid, &maps);
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
        describe(p, process, &status, in_scope);
        process->forbidden = forbidden;
        p->counts.forbidden += forbidden && process->selected && !counted;
        err = processes_add_mappings(p, process, &maps, time_ns, NULL);
    }
    procfs_maps_close(&maps);
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
