/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel knows about the running task: its identity, its user registers, where its stack begins. */
#ifndef BPF_SAMPLER_TASK_H
#define BPF_SAMPLER_TASK_H

#include "bpf/kernel.h"

#include <bpf/bpf_core_read.h>

#include "bpf/sampler_state.h"

/* If the kernel gives a pointer whose type the verifier knows (5.11+), members are loaded without a call for each. */
static __always_inline void task_read(struct task_facts *facts)
{
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)) {
        struct task_struct *task = bpf_get_current_task_btf();
        struct mm_struct *mm = task->mm;

        facts->start_boottime_ns = task->group_leader->start_boottime;
        facts->exec_generation = task->self_exec_id;
        facts->thread_pointer = task->ARCH_TASK_THREAD_POINTER;
        facts->memory = (__u64)mm;
        facts->stack_start = mm ? mm->start_stack : 0;
        facts->flags = task->flags;
    } else {
        struct task_struct *task = (void *)bpf_get_current_task();

        facts->start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime);
        facts->exec_generation = BPF_CORE_READ(task, self_exec_id);
        facts->thread_pointer = BPF_CORE_READ(task, ARCH_TASK_THREAD_POINTER);
        facts->memory = (__u64)BPF_CORE_READ(task, mm);
        facts->stack_start = BPF_CORE_READ(task, mm, start_stack);
        facts->flags = BPF_CORE_READ(task, flags);
    }
}

/* The user of the current task, as in struct wire_sample. */
static __always_inline __u32 task_user(void)
{
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)) {
        const struct cred *cred = bpf_get_current_task_btf()->cred;

        return cred ? cred->euid.val + 1 : 0;
    }
    struct task_struct *task = (void *)bpf_get_current_task();
    return BPF_CORE_READ(task, cred, euid.val) + 1;
}

/* The user registers as they were when the task entered the kernel. 0: they could be read. */
static __always_inline int registers_of_task(struct scratch *s)
{
    struct task_struct *task = (void *)bpf_get_current_task();
    void *at;

    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
        at = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
    else
        at = (char *)BPF_CORE_READ(task, stack) + ARCH_KERNEL_STACK_BYTES - sizeof s->regs;
    if (bpf_probe_read_kernel(&s->regs, sizeof s->regs, at) || !arch_is_user(&s->regs))
        return 1;
    arch_registers(s->sample.registers, &s->regs);
    return 0;
}

/*
 * Bytes of the user stack from `sp` to its start; 0: not known. A thread that pthread_create() made has its control block,
 * which the thread pointer names, at the upper end of its stack; the first thread's stack starts where the kernel put the
 * arguments.
 */
static __always_inline __u64 stack_size_of(const struct task_facts *facts, __u64 sp)
{
    if (facts->thread_pointer > sp && facts->thread_pointer - sp < WALK_NATIVE_STACK_BYTES)
        return facts->thread_pointer - sp;
    if (facts->stack_start > sp && facts->stack_start - sp < WALK_NATIVE_STACK_BYTES)
        return facts->stack_start - sp;
    return 0;
}

/* Whether a process that user space has not configured was first met so recently that it may yet be. */
static __always_inline int is_fresh(const struct task_facts *facts, __u32 tgid, __u64 now_ns)
{
    if (facts->flags & PF_KTHREAD)
        return 0;
    struct wire_unknown now = {
        .start_boottime_ns = facts->start_boottime_ns,
        .exec_generation = facts->exec_generation,
        .first_ns = now_ns,
    };
    struct wire_unknown *known = bpf_map_lookup_elem(&unknown, &tgid);
    if (!known || known->start_boottime_ns != now.start_boottime_ns || known->exec_generation != now.exec_generation) {
        bpf_map_update_elem(&unknown, &tgid, &now, BPF_ANY);
        return 1;
    }
    if (now_ns - known->first_ns < WIRE_UNKNOWN_NS)
        return 1;
    __sync_fetch_and_add(&known->ticks, 1);
    return 0;
}

#endif
