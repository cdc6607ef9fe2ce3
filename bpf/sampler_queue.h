/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long the threads of the recorded processes wait for a CPU, all together. The kernel keeps that for each thread; user
 * space has it go over all threads now and then (an iterator of BPF, as in bpf/sampler_sleep.h), and what came to each since
 * it was last seen is added up. What a thread waited after it was last seen, and then ended, is missing.
 */
#ifndef BPF_SAMPLER_QUEUE_H
#define BPF_SAMPLER_QUEUE_H

#include "bpf/sampler_state.h"

/* Up to the last pass; read by user space. */
volatile __u64 queue_waited_ns = 0;
/* When the pass before this one began; 0: there was none. Set by user space. What has started since counts from its start. */
volatile __u64 queue_since_ns = 0;

struct queue_note {
    __u64 start_ns, delay_ns;
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1); /* user space sets it */
    __type(key, __u32);
    __type(value, struct queue_note);
} queue_notes SEC(".maps");

SEC("iter/task")
int queueing(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    __u32 tgid, tid;

    if (!task)
        return 0;
    tgid = task->tgid;
    tid = task->pid;
    if (!bpf_core_field_exists(task->sched_info.run_delay) || !bpf_map_lookup_elem(&processes, &tgid))
        return 0;
    struct queue_note now = {.start_ns = task->start_boottime, .delay_ns = task->sched_info.run_delay};
    struct queue_note *known = bpf_map_lookup_elem(&queue_notes, &tid);
    if (known && known->start_ns == now.start_ns) {
        if (now.delay_ns > known->delay_ns)
            queue_waited_ns += now.delay_ns - known->delay_ns;
        known->delay_ns = now.delay_ns;
        return 0;
    }
    if (queue_since_ns && now.start_ns >= queue_since_ns)
        queue_waited_ns += now.delay_ns;
    bpf_map_update_elem(&queue_notes, &tid, &now, BPF_ANY);
    return 0;
}

#endif
