/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threads that no switch tells of: those that slept before the recording began, or before their process was followed, and
 * go on sleeping; and those whose wait lasts although no stack of it was taken.
 *
 * User space has the kernel go over all threads (an iterator of BPF, since Linux 5.8), which runs `sleeping` for each, in
 * pycap's own context. Of a thread that sleeps it takes what only the kernel knows: user registers, kernel stack, thread
 * pointer. Memory of another process cannot be read here. User space reads it, and walks the same stacks over it
 * (capture/session/sleepers.h); afterwards the thread's entry in `waits` shows whether it slept all the while.
 *
 * A thread without an entry is noted when it is seen asleep, and gets its entry when it is seen again and has not been
 * switched to in between. So its account begins at the note, and what wakes within that time is left to `switched`. If that
 * runs for the thread at the same time on another CPU, either it finds this entry, or this one is not made.
 */
#ifndef BPF_SAMPLER_SLEEP_H
#define BPF_SAMPLER_SLEEP_H

#include "bpf/sampler_wait.h"

/* Set by user space before each pass over the threads. */
volatile __u64 sleep_noted_ns = 0;     /* an entry is made for a thread that was noted at least so long ago */
volatile __u64 sleep_stackless_ns = 0; /* a wait without a stack is reported when it lasts at least so long */

struct sleep_note {
    __u64 time_ns, switches;
};
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1); /* user space sets it */
    __type(key, __u32);
    __type(value, struct sleep_note);
} sleep_notes SEC(".maps");

#define SLEEP_MESSAGE_MASK 2047
/* What does not fit on the stack. There is one reader at a time. */
struct sleep_room {
    struct wire_thread thread;
    struct pt_regs regs;
    union {
        struct wire_sample sample;
        __u8 message[SLEEP_MESSAGE_MASK + 1 + WIRE_KERNEL_MAX * 8];
    };
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sleep_room);
} sleep_rooms SEC(".maps");

/* The state of a thread that is not on a CPU, has left it to wait, and lives; 0: it is none. */
static __always_inline __u32 sleep_state(struct task_struct *task)
{
    __u32 state = task_state(task);

    if (task->exit_state || state & TASK_DEAD || (bpf_core_field_exists(task->on_cpu) && task->on_cpu))
        return 0;
    return state;
}

static __always_inline __u64 sleep_switches(struct task_struct *task)
{
    return task->nvcsw + task->nivcsw;
}

/* In place of a note's time: there is no room for the thread's entry, which was counted. */
#define SLEEP_REFUSED (~0ull)

/* Since when a thread without an entry is known to sleep; 0: it is noted now, or has been refused. */
static __always_inline __u64 asleep_since(struct task_struct *task, __u64 now_ns)
{
    __u32 tid = task->pid;
    struct sleep_note now = {.time_ns = now_ns, .switches = sleep_switches(task)};
    struct sleep_note *known = bpf_map_lookup_elem(&sleep_notes, &tid);

    if (known && known->switches == now.switches)
        return known->time_ns <= now_ns && now_ns - known->time_ns >= sleep_noted_ns ? known->time_ns : 0;
    bpf_map_update_elem(&sleep_notes, &tid, &now, BPF_ANY);
    return 0;
}

/* Adds one to a counter of this CPU, which a switch that comes in between may count up, too. */
static __always_inline void count_beside(__u64 *counter)
{
    if (counter)
        __sync_fetch_and_add(counter, 1);
}

/* There are too many threads: this one is not tried again as long as it sleeps. */
static __always_inline void refuse_sleeper(__u32 tid, __u64 switches)
{
    struct sleep_note refused = {.time_ns = SLEEP_REFUSED, .switches = switches};
    __u32 reason = LOSS_wait_untracked;

    bpf_map_update_elem(&sleep_notes, &tid, &refused, BPF_ANY);
    count_beside(bpf_map_lookup_elem(&losses, &reason));
}

/*
 * Makes the entry of a thread that has slept since `since_ns`. NULL: it has run meanwhile, or there are too many threads.
 * A thread that was switched to before the entry was there has another one by then, or, if it has ended, none.
 */
static __noinline struct wire_thread *entry_of_sleeper(struct task_struct *task, struct sleep_room *room, __u32 state,
                                                       __u64 since_ns)
{
    __u32 tid = task->pid;
    __u64 switches = sleep_switches(task);
    struct wire_thread *t = &room->thread;

    __builtin_memset(t, 0, sizeof *t);
    t->type = WIRE_THREAD;
    thread_begin(t, task, since_ns);
    t->system_call = arch_system_call(&room->regs);
    t->kind = kind_of(state, t->system_call);
    t->queued_ns = queued_ns(task, 0);
    t->site = site_of_call(t);
    t->has_stack = t->stacks = 1;
    long refused = add_thread(tid, t->tgid, t);
    if (refused) {
        if (refused != -EEXIST)
            refuse_sleeper(tid, switches);
        return 0;
    }
    if (sleep_state(task) && sleep_switches(task) == switches)
        return bpf_map_lookup_elem(&waits, &tid);
    if (task->exit_state || task_state(task) & TASK_DEAD)
        forget_thread(tid, t->tgid);
    return 0;
}

/* Takes a wait that has lasted without a stack: from now on it has one. */
static __always_inline int take_stackless(struct task_struct *task, struct wire_thread *t, __u64 now_ns)
{
    __u64 since_ns = t->switched_ns;

    if (t->runs || t->has_stack || !t->kind || t->exec_generation != task->self_exec_id || now_ns < since_ns ||
        now_ns - since_ns < sleep_stackless_ns)
        return 0;
    t->has_stack = 1;
    return 1;
}

/* It is a wait that is seen and has a stack. */
static __always_inline void count_sleeper(void)
{
    __u32 event = wait_event;
    struct wire_event_stats *counts = bpf_map_lookup_elem(&event_stats, &event);

    if (counts) {
        count_beside(&counts->count[WIRE_EVENT_TICKS]);
        count_beside(&counts->count[WIRE_EVENT_SAMPLED]);
    }
}

/*
 * For how long the thread had been off its CPU at `until_ns`, in ms, as the scheduler knows: exec_start is when its time on the CPU
 * was last added up, by a clock that leaves out what interrupts and the hypervisor take. That of this CPU was set within a tick.
 * Where the two say less than has been seen, it is what has been seen.
 */
static __always_inline __u32 slept_ms(struct task_struct *task, __u64 now_ns, __u64 until_ns)
{
    if (!has_queue_clock(task) || !bpf_core_field_exists(task->se.exec_start) ||
        !bpf_core_field_exists(task->se.cfs_rq->rq->clock_task))
        return WIRE_SLEPT_UNKNOWN;
    struct rq *there = task->se.cfs_rq->rq;
    struct task_struct *self = (struct task_struct *)bpf_get_current_task();
    __u64 left = task->se.exec_start + (there->clock - there->clock_task), now = BPF_CORE_READ(self, se.cfs_rq, rq, clock);
    __u64 since_ns = now_ns - until_ns, slept_ns = now - left;

    if (!task->se.exec_start)
        return WIRE_SLEPT_UNKNOWN;
    if (now < left || slept_ns < since_ns)
        return 0;
    __u64 ms = (slept_ns - since_ns) / 1000000;
    return ms < WIRE_SLEPT_UNKNOWN ? ms : WIRE_SLEPT_UNKNOWN;
}

/* Fills in the head of a sample of the wait that `t` is in; its flags say that more is to be read. */
static __always_inline void sleeper_begin(struct sleep_room *room, struct task_struct *task, const struct wire_thread *t)
{
    struct wire_sample *m = &room->sample;
    struct mm_struct *mm = task->mm;
    struct task_facts facts = {.thread_pointer = task->ARCH_TASK_THREAD_POINTER, .stack_start = mm ? mm->start_stack : 0};

    __builtin_memset(m, 0, sizeof *m);
    m->type = WIRE_SAMPLE;
    m->flags = WIRE_WAITS | WIRE_IN_KERNEL | WIRE_STACK_UNREAD;
    m->time_ns = t->switched_ns;
    m->tgid = t->tgid;
    m->tid = t->tid;
    m->event = wait_event;
    m->start_boottime_ns = t->start_boottime_ns;
    m->exec_generation = t->exec_generation;
    m->interpreter_id = WIRE_INTERPRETER_ID_NONE;
    m->native_last_cfa = WIRE_CFA_NONE;
    m->wait_kind = t->kind;
    m->system_call = t->system_call;
    m->wait_site = t->site;
    m->thread_handle = facts.thread_pointer;
    if (arch_is_user(&room->regs)) {
        arch_registers(m->registers, &room->regs);
        m->flags |= WIRE_REGISTERS_OK;
        m->stack_size = stack_size_of(&facts, m->registers[ARCH_SP]);
    }
}

static __always_inline void read_registers_of(struct task_struct *task, struct pt_regs *regs)
{
    const struct pt_regs *found = user_registers(task, regs);

    if (found != regs && bpf_probe_read_kernel(regs, sizeof *regs, found))
        __builtin_memset(regs, 0, sizeof *regs);
}

/* A thread: 0, or 1 where the output has no room and this one is to come again. */
SEC("iter/task")
int sleeping(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct seq_file *out = ctx->meta->seq;
    __u64 now_ns = bpf_ktime_get_ns(), since_ns;
    __u32 zero = 0, tgid, tid, state;

    if (!task)
        return 0;
    tgid = task->tgid;
    tid = task->pid;
    struct sleep_room *room = bpf_map_lookup_elem(&sleep_rooms, &zero);
    if (!room || !bpf_map_lookup_elem(&processes, &tgid) || !(state = sleep_state(task)))
        return 0;
    if (out->count + sizeof *room > out->size)
        return 1;
    struct wire_thread *t = bpf_map_lookup_elem(&waits, &tid);
    int has_entry = t != 0;
    if (has_entry ? !take_stackless(task, t, now_ns) : !(since_ns = asleep_since(task, now_ns)))
        return 0;
    read_registers_of(task, &room->regs);
    if (!has_entry)
        t = entry_of_sleeper(task, room, state, since_ns);
    if (!t)
        return 0;
    sleeper_begin(room, task, t);
    if (has_entry) {
        room->sample.flags |= WIRE_CONTINUES; /* it was counted when it began */
    } else {
        room->sample.slept_ms = slept_ms(task, now_ns, since_ns);
        count_sleeper();
    }
    long len = sample_kernel ? bpf_get_task_stack(task, room->message + sizeof room->sample, WIRE_KERNEL_MAX * 8, 0) : 0;
    if (len > 0)
        room->sample.kernel_count = (__u64)len / 8;
    __u64 bytes = sizeof room->sample + (__u64)room->sample.kernel_count * 8;
    WALK_BOUND(bytes, SLEEP_MESSAGE_MASK);
    bpf_seq_write(out, room->message, bytes);
    return 0;
}

#endif
