/* SPDX-License-Identifier: GPL-2.0-only */
/* Assembles a sample: its head, the registers, the stacks of each kind, and sends it. */
#ifndef BPF_SAMPLER_TAKE_H
#define BPF_SAMPLER_TAKE_H

#include "bpf/gil_waiters.h"
#include "bpf/sampler_native.h"
#include "bpf/sampler_python.h"
#include "bpf/sampler_task.h"

/* Fills in the sample's head, with no stacks so far. `process` may be NULL. */
static __always_inline void sample_begin(struct wire_sample *m, struct wire_process *process,
                                         const struct task_facts *facts, __u32 event, __u64 now_ns)
{
    __u64 id = bpf_get_current_pid_tgid();

    m->type = WIRE_SAMPLE;
    m->flags = process ? 0 : WIRE_UNCONFIGURED;
    m->wait_kind = 0;
    m->system_call = WIRE_NO_SYSTEM_CALL;
    m->wait_site = m->waited_ns = m->owed_ns = m->blame_ns = m->owed_blame_ns = m->taken_ns = m->futex = 0;
    m->gil_waiters = m->waker_kind = m->waker_tgid = m->waker_tid = m->wait_chance = m->slept_ms = 0;
    m->grown_start = m->grown_bytes = 0;
    /* Of some only: it mostly stays, and is not where the CPU has looked lately. These bits of the clock are as good as random. */
    m->user = now_ns & (WIRE_USERS_SHOWN - 1) << 4 ? 0 : task_user();
    m->reserved = 0;
    m->time_ns = now_ns;
    m->tgid = id >> 32;
    m->tid = id;
    m->cpu = bpf_get_smp_processor_id();
    m->event = event;
    m->start_boottime_ns = facts->start_boottime_ns;
    m->exec_generation = facts->exec_generation;
    m->stack_size = 0;
    m->kernel_count = m->python_count = m->stack_len_bytes = m->python_end = 0;
    m->native_count = m->native_end = 0;
    m->thread_handle = m->interpreter = 0;
    m->interpreter_id = WIRE_INTERPRETER_ID_NONE;
    m->task_len_bytes = m->stack_holes = 0;
    m->native_last_cfa = WIRE_CFA_NONE;

    /* The first sample after user space configured the process says which image was meant. */
    if (!process) {
        /* With no configuration there is nothing that could be out of date. */
    } else if (!(process->flags & WIRE_PROCESS_BOUND)) {
        process->start_boottime_ns = m->start_boottime_ns;
        process->exec_generation = m->exec_generation;
        barrier(); /* the flag last: another CPU may be reading this */
        process->flags |= WIRE_PROCESS_BOUND;
    } else if (process->exec_generation != m->exec_generation ||
               process->start_boottime_ns != m->start_boottime_ns) {
        m->flags |= WIRE_STALE;
    }
}

/*
 * Takes the user registers and what follows from them; the sample's flags say in which mode the CPU was. `tick` is NULL
 * in a program that the kernel calls from its own code.
 */
static __always_inline void registers_take(struct scratch *s, struct bpf_perf_event_data *tick)
{
    struct wire_sample *m = &s->sample;

    s->walk.config.thread_pointer = s->facts.thread_pointer;
    s->walk.config.stack_pointer = 0;
    s->live.len_bytes = 0;
    if (tick && arch_is_user(&tick->regs)) {
        arch_registers(m->registers, &tick->regs);
        m->flags |= WIRE_REGISTERS_OK;
    } else {
        m->flags |= WIRE_IN_KERNEL;
        if (!s->facts.memory)
            m->flags |= WIRE_KERNEL_THREAD;
        else if (!registers_of_task(s))
            m->flags |= WIRE_REGISTERS_OK;
        else
            count_part_loss(s, LOSS_no_user_registers);
    }
    if (m->flags & WIRE_REGISTERS_OK) {
        s->walk.config.stack_pointer = m->registers[ARCH_SP];
        m->stack_size = stack_size_of(&s->facts, m->registers[ARCH_SP]);
    }
}

/* Takes the kernel frames, to the message's first free byte. `ctx` is the program's. */
static __always_inline void kernel_frames(struct scratch *s, void *ctx)
{
    long len = bpf_get_stack(ctx, s->message + sizeof s->sample, WIRE_KERNEL_MAX * 8, 0);

    if (len > 0)
        s->sample.kernel_count = (__u64)len / 8;
    else
        count_part_loss(s, LOSS_kernel_stack_fault);
}

/* Sets s->walk and s->space up for a walk in `process`, of the thread that s->sample is about. False: its version is not known. */
static __always_inline int python_begin(struct scratch *s, const struct wire_process *process)
{
    struct wire_sample *m = &s->sample;
    __u32 index = process->layout;
    struct py_layout *layout = bpf_map_lookup_elem(&layouts, &index);

    if (!layout)
        return 0;
    s->walk.config.layout = *layout;
    s->walk.config.process = *process;
    s->code_generation = code_generation; /* read once: it may change meanwhile */
    s->space = (__u32)(m->start_boottime_ns ^ (m->start_boottime_ns >> 32)) * 0x9e3779b1u ^ m->tgid * 0x85ebca6bu ^
               (__u32)m->exec_generation * 0xc2b2ae35u ^ s->code_generation * 0x27d4eb2fu;
    return 1;
}

/* Takes the Python frames, to `at` in the message. */
static __always_inline void python_frames(struct scratch *s, const struct wire_process *process, __u64 at)
{
    struct wire_sample *m = &s->sample;

    if (!python_begin(s, process))
        return;
    s->python_at = at;
    s->code_bytes = s->code_count = 0;
    walk_python();
    m->python_count = s->walk.result.entry_count;
    if (s->cut && m->python_count > CUT_ENTRIES) {
        m->python_count = CUT_ENTRIES;
        m->python_end = LOSS_python_too_deep;
        m->flags |= WIRE_CUT;
    }
}

/* Takes the native frames, to `at` in the message. `process` may be NULL. */
static __always_inline void native_frames(struct scratch *s, const struct wire_process *process, __u64 at)
{
    /* The mappings of a new image are not known here: user space unwinds it. */
    int known = process && !(s->sample.flags & WIRE_STALE);
    /* Another CPU may be writing: the two halves are of one time only if they are read at once. */
    __u64 list = known ? *(const volatile __u64 *)&process->mapping_start : 0;

    s->mapping_start = (__u32)list;
    s->mapping_key = list >> 32;
    s->mapping_count = MAPPING_COUNT_UNREAD;
    s->native_at = at;
    unwind_native();
    s->sample.native_count = s->native.count;
    if (s->cut && s->native.count > CUT_ENTRIES) {
        struct native_frame *frames = native_entries(s);
        s->sample.native_count = CUT_ENTRIES;
        s->sample.native_last_cfa = frames[CUT_ENTRIES].sp;
        s->sample.native_end = LOSS_native_too_deep;
        s->sample.flags |= WIRE_CUT;
    }
}

/*
 * Sends the sample, `len_bytes` with all its parts. 0: done. A function of its own, with few variables: 5.10 forgets the bounds
 * of one that is put on the stack.
 */
__attribute__((noinline)) int send_sample(__u32 len_bytes)
{
    struct scratch *s = scratch_get();
    __u64 len = len_bytes;

    if (!s || len > message_most_bytes())
        return 1;
    if (sample_native_stack_bytes)
        MESSAGE_BOUND(len, MESSAGE_STACK_AT + WIRE_STACK_MAX);
    else
        MESSAGE_BOUND(len, MESSAGE_STACK_AT);
    if (s->sample.flags & WIRE_STALE)
        ring_call(s->sample.time_ns);
    return ring_send(s->message, len) != 0;
}

/* Whether the thread executes another program. Where its stack cannot be read, that is why. */
__attribute__((noinline)) int is_in_exec(void)
{
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();

    return bpf_core_field_exists(task->in_execve) && BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

/*
 * What is to be taken of the process that runs, behind the sample's head, and sends it. `ctx` is the program's, NULL where
 * kernel frames say nothing; `tick` is the same, or NULL. `process` may be NULL. Returns how many bytes that were; 0: the ring is full.
 */
static __always_inline __u64 take_stacks(struct scratch *s, void *ctx, struct bpf_perf_event_data *tick,
                                         struct wire_process *process)
{
    struct wire_sample *m = &s->sample;

    s->cut = ring_held_bytes() > sample_whole_bytes;
    if (!process)
        stage_drop();
    registers_take(s, tick);
    stage_end(STAGE_BEGIN);
    __u64 at = sizeof *m;
    if (sample_kernel && ctx && m->flags & WIRE_IN_KERNEL) {
        kernel_frames(s, ctx);
        at += (__u64)m->kernel_count * 8;
    }
    stage_end(STAGE_KERNEL);
    /*
     * A process that user space has not looked at yet, and that may be no Python, brings no native frames and no copy of
     * its stack: on hosts that start many programs these would fill the ring.
     */
    int user = m->flags & WIRE_REGISTERS_OK && (process || sample_unconfigured);
    if (user)
        live_stack_fill();
    if (user && !s->live.len_bytes && is_in_exec()) {
        m->flags |= WIRE_IN_EXEC;
        user = 0;
    }
    stage_end(STAGE_STACK);
    s->walk.result.entry_count = 0;
    if (!(m->flags & (WIRE_STALE | WIRE_IN_EXEC | WIRE_KERNEL_THREAD)) && sample_python && process && process->runtime) {
        python_frames(s, process, at);
        at += (__u64)m->python_count * sizeof(struct wire_python);
        if (wait_recorded && tick && m->flags & WIRE_GIL)
            m->gil_waiters = gil_waiters(process, m->tgid, m->interpreter);
    }
    stage_end(STAGE_PYTHON);
    if (sample_native && user) {
        native_frames(s, process, at);
        at += (__u64)m->native_count * sizeof(struct native_frame);
    }
    stage_end(STAGE_NATIVE);
    if (m->thread_handle && s->walk.config.process.running_task)
        at += append_task(at);
    if (sample_native_stack_bytes && user && (sample_every_stack || native_needs_help(m->native_end))) {
        append_stack(at);
        at += m->stack_len_bytes;
    }
    stage_end(STAGE_REST);
    int lost = send_sample(at);
    stage_end(STAGE_SEND);
    return lost ? 0 : at;
}

#endif
