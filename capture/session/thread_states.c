/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel shows of a thread in /proc, and since when: the sampler knows of a thread that it saw leave its CPU, and of
 * one that slept before it was there what the scheduler says.
 */
#include "capture/session/thread_states.h"

#include "capture/host/procfs.h"
#include "capture/host/procfs_task.h"
#include "capture/trace/trace_accounts.h"

/* So many threads of all processes at most. */
#define STATES_MAX CENSUS_MAX

static enum trace_kernel_state state_of(char letter)
{
    switch (letter) {
    case 'R':
        return TRACE_STATE_RUNS;
    case 'S':
    case 'I':
        return TRACE_STATE_SLEEPS;
    case 'D':
        return TRACE_STATE_UNINTERRUPTIBLE;
    case 'T':
        return TRACE_STATE_STOPPED;
    case 't':
        return TRACE_STATE_TRACED;
    case 'Z':
    case 'X':
        return TRACE_STATE_ENDED;
    default:
        return TRACE_STATE_UNKNOWN;
    }
}

/* When a thread that waits left its CPU; 0: not known, as always without the sampler, which sees threads leave. */
static uint64_t since_of(const struct session *s, uint32_t tid)
{
    const struct wire_sample *wait = waits_kept(s->waits, tid);
    struct wire_thread thread;

    if (!s->sampler || !sampler_get_thread(s->sampler, tid, &thread) || thread.runs)
        return 0;
    /* The account of a thread that was met asleep begins when it was met, which is no switch. */
    if (!wait || wait->time_ns != thread.switched_ns)
        return thread.switched_ns > thread.since_ns ? thread.switched_ns : 0;
    if (wait->slept_ms == WIRE_SLEPT_UNKNOWN)
        return 0;
    uint64_t slept_ns = wait->slept_ms * NS_PER_MS;
    return slept_ns < wait->time_ns ? wait->time_ns - slept_ns : 1;
}

static struct error *put_thread(struct session *s, struct process *p, uint32_t tid)
{
    struct procfs_stat stat;

    if (!procfs_stat((pid_t)p->tgid, (pid_t)tid, &stat))
        return NULL; /* it is gone */
    enum trace_kernel_state state = state_of(stat.state);
    uint64_t since_ns = state == TRACE_STATE_RUNS || state == TRACE_STATE_ENDED ? 0 : since_of(s, tid);
    return trace_builder_thread_state(s->builder, p, tid, now_ns(), state, since_ns);
}

static struct error *put_process(struct session *s, struct process *p, size_t *left)
{
    struct procfs_pids threads = {0};
    struct error *err = procfs_threads((pid_t)p->tgid, &threads);

    error_destroy(err); /* it has ended */
    err = NULL;
    for (size_t i = 0; !err && i < threads.list.count && *left; i++, --*left)
        err = put_thread(s, p, (uint32_t)threads.list.data[i]);
    VEC_DEINIT(&threads.list);
    return err;
}

struct error *thread_states_put(struct session *s)
{
    uint32_t cursor = 0;
    size_t left = STATES_MAX;

    for (struct process *p; (p = processes_next(s->processes, &cursor));) {
        if (!p->ended_ns && processes_wants(s->processes, p))
            TRY(put_process(s, p, &left));
    }
    return NULL;
}
