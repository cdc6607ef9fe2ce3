/* SPDX-License-Identifier: Apache-2.0 */
/* A process may end while its files in /proc are read: no read treats that as an error. */
#include "capture/process/processes_proc.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "capture/host/procfs_descent.h"
#include "capture/host/procfs_maps.h"
#include "capture/process/process_names.h"
#include "capture/process/process_program.h"
#include "formats/base/clock.h"

/*
 * How long reading all processes may delay a recording, some times what a host with thousands of them takes. The others
 * are read in slices while it records (processes_rescan.h), or when they are sampled.
 */
#define SCAN_NS NS_PER_S
/* When a process that was late is asked again, and at most how long after it was late once more. */
#define AGAIN_FIRST_NS NS_PER_S
#define AGAIN_MAX_NS (30 * NS_PER_S)

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
    code_mappings_unify(&process->mappings, &p->code_pool); /* forked workers have equal ones */
    return NULL;
}

static void set_owner(struct processes *p, struct process *process, const struct procfs_status *status)
{
    struct owner_facts facts = {.uid = status->uid};

    owner_read(&p->host, (pid_t)process->tgid, &facts);
    processes_set_owner(p, process, &facts);
}

bool processes_read_owner(struct processes *p, struct process *process)
{
    struct procfs_status status;
    struct error *err = procfs_status((pid_t)process->tgid, &status);
    bool found = !err;

    error_destroy(err);
    if (found)
        set_owner(p, process, &status);
    return found;
}

/* Sets what /proc says of a process that is new in the table, and whether the filter lets it pass. */
static void describe(struct processes *p, struct process *process, const struct procfs_status *status, struct process *probe)
{
    process_sampling_disinherit(&p->sampling, process->tgid);
    process->since_ns = 0;
    process->parent_tgid = status->parent_tgid;
    process->ns_tgid = status->ns_tgid;
    process->start_ticks = status->start_ticks;
    memcpy(process->comm, status->comm, sizeof process->comm);
    process_take_program(process, probe);
    process->undecided = probe->undecided;
    process_select(process, probe->in_scope, probe->passes);
    set_owner(p, process, status);
}

/* Opens what a process has mapped. Where that is forbidden or late the side-band reports what it maps from now on. */
static struct error *open_maps(uint32_t tgid, struct procfs_maps *maps)
{
    struct error *err = procfs_maps_open((pid_t)tgid, maps);

    maps->late = err && err->os_errno == EBUSY;
    if (!err || (err->code != ERROR_PERMISSION && !maps->late))
        return err;
    error_destroy(err);
    return NULL;
}

/* Whether all that the process has mapped is known now. */
static void set_held_up(struct process *process, bool late)
{
    uint64_t next_ns = process->wait_ns ? 2 * process->wait_ns : AGAIN_FIRST_NS;

    process->held_up = late;
    process->wait_ns = !late ? 0 : next_ns < AGAIN_MAX_NS ? next_ns : AGAIN_MAX_NS;
    process->again_ns = now_ns() + process->wait_ns;
}

/* A child of a process that the user asked for, whose fork may be among the events that were lost; this process is none (procfs_descent.h). */
static bool is_lost_child(struct processes *p, uint32_t tgid, const struct procfs_status *status)
{
    const struct process *parent = processes_find(p, status->parent_tgid);

    return (p->missed || p->rescan.running) && parent && parent->in_scope && p->options.follow && (pid_t)tgid != getpid();
}

/*
 * Puts a process into the table, with what was found out of it in `probe`. `maps`: NULL where its mappings are not wanted.
 */
static struct error *put(struct processes *p, struct process *probe, const struct procfs_status *status, struct procfs_maps *maps,
                         uint64_t time_ns, struct process **out)
{
    const struct process *old = processes_find(p, probe->tgid);
    bool counted = old && old->forbidden;
    struct process *process;

    if (old && (!old->start_ticks || old->start_ticks == status->start_ticks))
        process_keep_program(probe, old);
    TRY(processes_begin(p, probe->tgid, time_ns, &process));
    describe(p, process, status, probe);
    process->forbidden = maps && maps->fd < 0 && !maps->ended && !maps->late; /* those of a kernel thread or zombie are empty */
    p->counts.forbidden += process->forbidden && !counted;
    if (maps && maps->fd >= 0)
        TRY(processes_add_mappings(p, process, maps, time_ns, NULL));
    set_held_up(process, maps && maps->late);
    if (p->options.include_non_python)
        TRY(processes_configure(p, process));
    *out = process;
    return NULL;
}

/* Reads a process that is in scope, and puts it into the table. */
static struct error *read_one(struct processes *p, struct process *probe, const struct procfs_status *status, uint64_t time_ns,
                              struct process **out)
{
    struct procfs_maps maps = {.fd = -1};
    bool wanted = probe->passes || process_awaits_python(probe);
    struct error *err = wanted ? open_maps(probe->tgid, &maps) : NULL;

    if (!err) {
        err = put(p, probe, status, wanted ? &maps : NULL, time_ns, out);
        procfs_maps_close(&maps);
    }
    return err;
}

struct error *processes_read(struct processes *p, uint32_t tgid, bool in_scope, uint64_t time_ns, struct process **out)
{
    struct process probe = {.tgid = tgid};
    struct procfs_status status;

    *out = NULL;
    struct error *err = procfs_status((pid_t)tgid, &status);
    if (!err) {
        probe.in_scope = in_scope || is_lost_child(p, tgid, &status);
        if (!probe.in_scope && !p->options.whole_host) {
            struct process *old = processes_find(p, tgid);
            if (old)
                processes_drop(p, old, time_ns);
            return NULL;
        }
        probe.parent_tgid = status.parent_tgid;
        probe.start_ticks = status.start_ticks;
        memcpy(probe.comm, status.comm, sizeof probe.comm);
        probe.passes = probe.in_scope && processes_passes(p, &probe);
        err = read_one(p, &probe, &status, time_ns, out);
    }
    process_forget_program(&probe);
    if (!err || err->code == ERROR_NO_MEMORY)
        return err;
    if (err->code == ERROR_NOT_FOUND)
        p->counts.gone++;
    error_destroy(err);
    return NULL;
}

struct error *processes_read_mappings(struct processes *p, struct process *process, uint64_t time_ns)
{
    struct procfs_maps maps = {.fd = -1};

    struct error *err = open_maps(process->tgid, &maps);
    bool forbidden = !err && maps.fd < 0 && !maps.ended && !maps.late;
    p->counts.forbidden += forbidden && !process->forbidden;
    process->forbidden |= forbidden;
    if (!err && maps.fd >= 0)
        err = processes_add_mappings(p, process, &maps, time_ns, NULL);
    set_held_up(process, !err && maps.late);
    procfs_maps_close(&maps);
    if (err && err->code != ERROR_NO_MEMORY) { /* it is ending */
        error_destroy(err);
        err = NULL;
    }
    return err;
}

struct error *processes_decide_one(struct processes *p, struct process *process, uint64_t time_ns)
{
    if (!process->undecided || !process->in_scope || process->ended_ns)
        return NULL;
    if (process_awaits_python(process) && !code_mappings_count(&process->mappings))
        TRY(processes_read_mappings(p, process, time_ns));
    if (++process->undecided_tries == UNDECIDED_TRIES_MAX)
        process_find_program(process, true);
    process_select(process, true, processes_passes(p, process));
    if (process->undecided)
        return NULL;
    if (!process->passes) {
        code_mappings_deinit(&process->mappings);
        return NULL;
    }
    if (!code_mappings_count(&process->mappings))
        TRY(processes_read_mappings(p, process, time_ns));
    return p->options.include_non_python || process_has_python(process) ? processes_configure(p, process) : NULL;
}

struct error *processes_decide(struct processes *p, uint64_t time_ns)
{
    for (size_t i = 0; p->options.filter && i < p->live.count; i++)
        TRY(processes_decide_one(p, p->live.data[i], time_ns));
    return NULL;
}

/* What was forked below the processes asked for before now; what is from now on, the side-band reports. */
static struct error *read_descendants(struct processes *p, const uint32_t *pids, uint32_t pid_count)
{
    struct process *process;
    struct procfs_pids below;
    struct error *err = NULL;

    TRY(procfs_descendants(pids, pid_count, &below));
    for (size_t i = 0; !err && i < below.list.count; i++)
        err = processes_read(p, (uint32_t)below.list.data[i], true, 0, &process);
    VEC_DEINIT(&below.list);
    return err;
}

struct error *processes_scan(struct processes *p, const uint32_t *pids, uint32_t pid_count)
{
    struct process *process;
    struct procfs_pids all;
    struct error *err = NULL;

    for (uint32_t i = 0; i < pid_count; i++)
        TRY(processes_read(p, pids[i], true, 0, &process));
    if (!p->options.whole_host)
        return p->options.follow ? read_descendants(p, pids, pid_count) : NULL;
    TRY(procfs_pids(&all));
    uint64_t until_ns = p->options.recorded ? now_ns() + SCAN_NS : UINT64_MAX;
    for (size_t i = 0; !err && i < all.list.count && !p->missed; i++) {
        if (!processes_find(p, (uint32_t)all.list.data[i]))
            err = processes_read(p, (uint32_t)all.list.data[i], true, 0, &process);
        p->missed = now_ns() > until_ns;
    }
    VEC_DEINIT(&all.list);
    return err ? err : processes_decide(p, now_ns());
}
