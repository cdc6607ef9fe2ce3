/* SPDX-License-Identifier: Apache-2.0 */
/* A pass goes over all processes of /proc once, in as many slices as it takes. */
#include "capture/process/processes_rescan.h"

#include "capture/host/procfs.h"
#include "capture/process/processes_proc.h"
#include "formats/base/clock.h"

/* The unit of start times in /proc (USER_HZ). */
#define CLOCK_TICK_NS (10 * NS_PER_MS)
/* A slice ends with the process during which this much time is over, and the rest is REST times as long. */
#define SLICE_NS (4 * NS_PER_MS)
#define REST 9
/* From the end of a pass to the beginning of the next. */
#define PASS_NS (2 * NS_PER_S)
/* Between two readings of a process because a sample of it came. */
#define RECHECK_NS (NS_PER_S / 2)

/* Replaces what is known of the process's mappings by what it has. */
static struct error *read_mappings(struct processes *p, struct process *process, struct procfs_maps *maps, uint64_t time_ns)
{
    struct address_ranges seen = {0};
    size_t before = code_mappings_count(&process->mappings);

    struct error *err = processes_add_mappings(p, process, maps, time_ns, &seen);
    /* A process that is ending has no mappings any more, but its last samples are still to come. */
    if (!err && !maps->cut && seen.count && !code_mappings_keep(&process->mappings, &p->code_pool, seen.data, seen.count))
        err = error_no_memory();
    if (!err && process->configured && code_mappings_count(&process->mappings) != before)
        err = process_sampling_changed(&p->sampling, process);
    VEC_DEINIT(&seen);
    return err;
}

/* Updates a process of the table. */
static struct error *reread(struct processes *p, struct process *process, uint64_t time_ns)
{
    struct procfs_maps maps = {.fd = -1};
    struct procfs_status status;

    struct error *err = procfs_status((pid_t)process->tgid, &status);
    bool same = !err && (!process->bound || process->start_boottime_ns / CLOCK_TICK_NS == status.start_ticks);
    if (!err && (!same || !(process->python || p->options.include_non_python))) {
        bool in_scope = process->in_scope && (same || p->options.whole_host);
        return processes_read(p, process->tgid, in_scope, time_ns, &process);
    }
    if (!err && process->selected) /* if they may not be read any more, keep those that are known */
        err = procfs_maps_open((pid_t)process->tgid, &maps);
    if (!err && process->selected)
        err = read_mappings(p, process, &maps, time_ns);
    procfs_maps_close(&maps);
    if (err && err->code != ERROR_NO_MEMORY) { /* it is ending */
        error_destroy(err);
        err = NULL;
    }
    return err;
}

struct error *processes_recheck(struct processes *p, struct process *process, uint64_t time_ns)
{
    if ((!process->unsure && process->read_ns > p->lost_ns) || time_ns < process->read_ns + RECHECK_NS ||
        process->ended_ns)
        return NULL;
    struct procfs_maps maps = {.fd = -1};
    struct error *err = procfs_maps_open((pid_t)process->tgid, &maps);
    process->read_ns = time_ns;
    process->unsure = false;
    if (!err)
        err = read_mappings(p, process, &maps, time_ns);
    procfs_maps_close(&maps);
    if (err && err->code != ERROR_NO_MEMORY) {
        error_destroy(err);
        err = NULL;
    }
    return err;
}

/* ---- a pass ---- */

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

static bool is_gone(uint32_t tgid)
{
    struct procfs_status status;
    struct error *err = procfs_status((pid_t)tgid, &status);
    bool gone = err && err->code == ERROR_NOT_FOUND;

    error_destroy(err);
    return gone;
}

/* Those that are sampled come first: what they have mapped matters at their next tick. */
static struct error *begin(struct processes *p)
{
    struct rescan *r = &p->rescan;
    struct procfs_pids all;
    size_t first = 0;

    p->missed = false;
    TRY(procfs_pids(&all));
    for (size_t i = 0; i < all.list.count; i++) {
        pid_t pid = all.list.data[i];
        const struct process *process = processes_find(p, (uint32_t)pid);
        if (!process || !process->configured)
            continue;
        all.list.data[i] = all.list.data[first];
        all.list.data[first++] = pid;
    }
    r->pids = all.list.data;
    r->count = all.list.count;
    r->next = 0;
    r->running = true;
    return NULL;
}

static struct error *end(struct processes *p, uint64_t time_ns)
{
    struct rescan *r = &p->rescan;

    for (uint32_t i = 0; i < p->live.count; i++) {
        struct process *process = p->live.data[i];
        /* Nothing was read of it in this pass, so it was not in /proc, or has come since. */
        if (!process->ended_ns && process->pass != r->pass && is_gone(process->tgid))
            process->ended_ns = time_ns;
    }
    if (p->sampling.sampler)
        sampler_prune(p->sampling.sampler, is_there, p);
    free(r->pids);
    *r = (struct rescan){.pass = r->pass + 1, .due_ns = now_ns() + PASS_NS};
    return NULL;
}

static struct error *one(struct processes *p, uint32_t tgid, uint64_t time_ns)
{
    struct process *process = processes_find(p, tgid);
    bool known = process;
    struct error *err = process ? reread(p, process, time_ns)
                                : processes_read(p, tgid, p->options.whole_host, time_ns, &process);

    /* It is a child of one that was asked for, and may have children, which were looked at before it. */
    if (!p->options.whole_host && !known && process)
        p->missed = true;
    process = processes_find(p, tgid);
    if (process)
        process->pass = p->rescan.pass;
    return err;
}

uint64_t processes_rescan_due(const struct processes *p)
{
    return p->missed || p->rescan.running ? p->rescan.due_ns : UINT64_MAX;
}

struct error *processes_rescan(struct processes *p, uint64_t time_ns)
{
    struct rescan *r = &p->rescan;
    uint64_t began_ns = now_ns(), over_ns = began_ns;

    if (time_ns < processes_rescan_due(p))
        return NULL;
    if (!r->running)
        TRY(begin(p));
    while (r->next < r->count && over_ns < began_ns + SLICE_NS) {
        TRY(one(p, (uint32_t)r->pids[r->next++], time_ns));
        over_ns = now_ns();
    }
    if (r->next == r->count)
        return end(p, time_ns);
    r->due_ns = over_ns + REST * (over_ns - began_ns);
    return NULL;
}
