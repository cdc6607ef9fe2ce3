/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who wakes a thread that waits.
 *
 * The kernel calls `waking` where one thread is about to make another one runnable, and the thread that does so is the
 * current one: it has written to the pipe, or released the lock. But when an interrupt does it (a timer that has run out, a
 * disk or the network that has something), the current thread is whichever was running, and has nothing to do with it. How
 * deep a CPU is in interrupts it says in its preemption count.
 *
 * Nothing is sent: the thread's entry keeps it until the wait is over.
 */
#ifndef BPF_SAMPLER_WAKING_H
#define BPF_SAMPLER_WAKING_H

#include "bpf/sampler_wait.h"

/*
 * The preemption count is a variable of each CPU, or lies in one (struct pcpu_hot). User space finds out how far behind the
 * CPU's run queue that is, of which each thread knows the address: all variables of a CPU lie in the same order.
 */
const volatile __s64 preempt_count_from_queue = 0;

/* Bits of the preemption count (include/linux/preempt.h; the same from 5.10 on). */
#define SOFTIRQ_OFFSET 0x100 /* runs a soft interrupt; above it only says that they are held back */
#define HARDIRQ_MASK 0xf0000
#define NMI_MASK 0xf00000

struct waking_arguments {
    struct task_struct *task;
};

static __always_inline struct rq *current_queue(void)
{
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf))
        return bpf_get_current_task_btf()->se.cfs_rq->rq;
    return BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), se.cfs_rq, rq);
}

static __always_inline int preempt_count(void)
{
    struct pcpu_hot *hot = (void *)current_queue() + preempt_count_from_queue;
    void *at = bpf_core_field_exists(hot->preempt_count) ? &hot->preempt_count : (void *)hot;
    int count = 0;

    bpf_probe_read_kernel(&count, sizeof count, at);
    return count;
}

/* Who is at work on this CPU. The idle task only ever wakes somebody for an interrupt. */
static __always_inline enum wire_waker waker_kind(__u32 tgid)
{
    if (!tgid || preempt_count() & (SOFTIRQ_OFFSET | HARDIRQ_MASK | NMI_MASK))
        return WIRE_WAKER_INTERRUPT;
    return bpf_map_lookup_elem(&processes, &tgid) ? WIRE_WAKER_THREAD : WIRE_WAKER_OTHER;
}

SEC("tp_btf/sched_waking")
int waking(struct waking_arguments *arguments)
{
    if (!may_be_followed(arguments->task->tgid))
        return 0;
    __u64 start = sample_timed ? bpf_ktime_get_ns() : 0, id = bpf_get_current_pid_tgid();
    __u32 tid = arguments->task->pid;
    struct wire_thread *t = bpf_map_lookup_elem(&waits, &tid);

    /* A thread that has not quite left its CPU yet may be woken, too: when it leaves, it is known whether that counts. */
    if (!t || (t->waker_kind && !t->runs))
        return 0;
    t->waker_tgid = id >> 32;
    t->waker_tid = id;
    t->waker_kind = waker_kind(id >> 32);
    if (sample_timed)
        count_look_time(start);
    return 0;
}

#endif
