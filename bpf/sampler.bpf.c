// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sampler: runs at each tick of a perf event on every CPU.
 *
 * For a process that user space has configured it takes the kernel stack, the user
 * registers, the Python frames (bpf/python_walk.h), the native frames
 * (bpf/native_unwind.h) and, if the unwinder could not go on or if user space asks for
 * it, a copy of the live part of the user stack. It puts them into the CPU's ring buffer
 * without waking anybody. A code object that occurs for the first time in an address
 * space is copied into the ring just before the sample that refers to it. The parts are
 * independent of each other: what fails is counted by reason, and the rest is taken.
 *
 * Each step of a loop is a global function, so that the verifier looks at it once (on
 * every kernel since 5.10); it is called from a bounded loop.
 */
#include "bpf/sampler_growth.h"
#include "bpf/sampler_hit.h"
#include "bpf/sampler_owner.h"
#include "bpf/sampler_queue.h"
#include "bpf/sampler_sleep.h"
#include "bpf/sampler_take.h"
#include "bpf/sampler_wait.h"
#include "bpf/sampler_waking.h"

/* The arguments of the tracepoint. */
struct exec_arguments {
    struct task_struct *task;
    __u64 old_pid; /* the thread's id before it executed */
};

char LICENSE[] SEC("license") = "GPL";

/*
 * The index of the event that fired. An event's id is in the kernel's part of the context, which is stable enough to be
 * relied on (Linux 4.9 to 7.x) and relocated. A function of its own, so that what it keeps on the stack does not add to
 * that of the walkers.
 */
static __noinline __u32 event_number(struct bpf_perf_event_data *ctx)
{
    struct bpf_perf_event_data_kern *kernel = (void *)ctx;
    __u64 id = BPF_CORE_READ(kernel, event, id);
    __u32 *number = bpf_map_lookup_elem(&event_numbers, &id);

    return number ? *number & (WIRE_EVENT_MAX - 1) : 0;
}

static __always_inline int take_at_tick(struct scratch *s, struct bpf_perf_event_data *ctx, __u32 event,
                                        struct wire_process *process, __u64 now_ns)
{
    __u64 period = sample_periods[event & (WIRE_EVENT_MAX - 1)];

    sample_begin(&s->sample, process, &s->facts, event, now_ns);
    s->sample.period = period ? period : ctx->sample_period;
    return take_stacks(s, ctx, ctx, process) != 0;
}

/* A tick of an event; says what came of it. */
static __always_inline enum wire_event_stat tick(struct bpf_perf_event_data *ctx, __u32 event)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;

    if (!tgid)
        return WIRE_EVENT_IDLE;
    struct scratch *s = scratch_enter();
    if (!s)
        return WIRE_EVENT_NESTED;
    struct wire_process *process = bpf_map_lookup_elem(&processes, &tgid);
    __u64 now_ns = bpf_ktime_get_ns();
    enum wire_event_stat result = WIRE_EVENT_OTHERS;
    task_read(&s->facts);
    if (process || sample_unconfigured || is_fresh(&s->facts, tgid, now_ns))
        result = take_at_tick(s, ctx, event, process, now_ns) ? WIRE_EVENT_SAMPLED : WIRE_EVENT_RING_FULL;
    scratch_leave(s);
    return result;
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
    __u64 start = sample_timed ? bpf_ktime_get_ns() : 0;
    __u32 event = sample_event_count > 1 ? event_number(ctx) : 0;
    struct wire_event_stats *counts = bpf_map_lookup_elem(&event_stats, &event);

    if (!counts)
        return 0;
    counts->count[WIRE_EVENT_TICKS]++;
    counts->count[tick(ctx, event) & (WIRE_EVENT_STAT_COUNT - 1)]++;
    if (sample_timed)
        count_time(WIRE_STAT_CPU_NS, bpf_ktime_get_ns() - start);
    return 0;
}

/*
 * A process executes another program. The thread that does so has the id of the first thread from then on: what is known of
 * it by its own would stay for ever.
 */
SEC("tp_btf/sched_process_exec")
int executed(struct exec_arguments *arguments)
{
    struct task_struct *task = arguments->task;
    __u32 before = arguments->old_pid;
    struct wire_thread *t = before == (__u32)task->pid ? 0 : bpf_map_lookup_elem(&waits, &before);

    if (t && t->tgid == (__u32)task->tgid) {
        __u64 now_ns = bpf_ktime_get_ns();
        gil_return(t, now_ns);
        end_thread(before, now_ns);
    }
    return 0;
}

/*
 * A forked child runs the same image at the same addresses: with a copy of its parent's configuration, bound to its own
 * start time, it is sampled from its first tick on, before user space has heard of it.
 */
SEC("raw_tracepoint/sched_process_fork")
int forked(struct bpf_raw_tracepoint_args *ctx)
{
    struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];
    __u32 tgid = BPF_CORE_READ(parent, tgid), child_tgid = BPF_CORE_READ(child, tgid);
    struct wire_process copy, *process;

    if (tgid == child_tgid)
        return 0; /* a thread */
    process = bpf_map_lookup_elem(&processes, &tgid);
    if (!process)
        return 0;
    /* The configuration is about an older image of the parent: not for the child. */
    if (process->flags & WIRE_PROCESS_BOUND && process->exec_generation != BPF_CORE_READ(parent, self_exec_id))
        return 0;
    copy = *process;
    copy.start_boottime_ns = BPF_CORE_READ(child, start_boottime);
    copy.exec_generation = BPF_CORE_READ(child, self_exec_id);
    copy.flags |= WIRE_PROCESS_INHERITED | WIRE_PROCESS_BOUND;
    copy.gils = 0;
    follow(child_tgid, &copy);
    /* It may execute another program in a moment. */
    struct scratch *s = scratch_enter();
    if (s) {
        ring_call(bpf_ktime_get_ns());
        scratch_leave(s);
    }
    return 0;
}
