/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiting: where threads of followed processes leave the CPU, and for how long.
 *
 * The kernel calls `switched` in the middle of each switch between threads. The thread that leaves is still the current
 * one: its stack is taken there, by the same walkers as at a tick. Memory of the one that comes cannot be read yet, but its
 * wait has its length now. User space puts both together (struct wire_wait).
 *
 * A stack takes some ten times as long as a look at the switch, so not every wait has one. At a call site (a thread, a system
 * call, where the newest frames of Python are) a wait has one with such a chance that there is one for each period of the
 * event that is waited there (bpf/wait_chance.h). The site owes the waits of which no stack was taken, and user space adds
 * them to stacks of the same site. So each nanosecond is in the trace, at the right thread, line and system call: what is
 * sampled is which outer frames it has.
 *
 * Times are exact whether a stack was taken or not: `waits` holds their sums. A thread is on one CPU at a time, so its entry
 * needs no lock; bpf/sampler_sleep.h and bpf/sampler_waking.h write to members of it that no sum depends on.
 */
#ifndef BPF_SAMPLER_WAIT_H
#define BPF_SAMPLER_WAIT_H

#include "bpf/sampler_gil.h"
#include "bpf/sampler_room.h"
#include "bpf/sampler_site.h"
#include "bpf/wait_chance.h"

volatile __u32 wait_enabled = 0;
volatile __u32 wait_left = 0; /* threads that ended while there was no room for the message */
const volatile __u32 wait_event = 0;     /* index of the event */
const volatile __u32 wait_has_state = 0; /* the tracepoint has a fourth argument: the state of the thread that leaves */

/* Waits of a thread that have a stack each, as long as its process has not had too many in this second. */
#define WAIT_FIRST 16

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1); /* user space sets it */
    __type(key, __u32);
    __type(value, struct wire_thread);
} waits SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1); /* user space sets it */
    __type(key, __u64);
    __type(value, struct wire_wait_site);
} wait_sites SEC(".maps");

const volatile struct wire_thread wait_nobody = {.type = WIRE_THREAD}; /* here, since the walkers need the stack */

/* The arguments of the tracepoint, as the kernel passes them since 5.19; before 5.18 there are three. */
struct switch_arguments {
    __u64 preempt;
    struct task_struct *prev, *next;
    __u64 prev_state;
};

/* Counts `switches` away from threads that are followed, of which `stat` came. */
static __always_inline void count_switch(__u64 switches, enum wire_event_stat stat)
{
    __u32 event = wait_event;
    struct wire_event_stats *counts = bpf_map_lookup_elem(&event_stats, &event);

    if (counts) {
        counts->count[WIRE_EVENT_TICKS] += switches;
        counts->count[stat & (WIRE_EVENT_STAT_COUNT - 1)]++;
    }
}

static __always_inline __u32 task_state(struct task_struct *task)
{
    if (bpf_core_field_exists(task->__state))
        return task->__state;
    return ((struct task_struct___before_5_14 *)task)->state;
}

/*
 * The state of the thread that leaves. In it TASK_WAKING may stand already: another CPU wakes it, before it has quite gone.
 * The argument is what the scheduler decided by.
 */
static __always_inline __u32 state_of(struct switch_arguments *arguments)
{
    if (arguments->preempt & 1)
        return 0;
    return wait_has_state ? arguments->prev_state : task_state(arguments->prev);
}

static __always_inline enum wire_wait_kind kind_of(__u32 state, int system_call)
{
    if (state & TASK_UNINTERRUPTIBLE)
        return WIRE_WAIT_UNINTERRUPTIBLE;
    if (state & (TASK_STOPPED | TASK_TRACED))
        return WIRE_WAIT_STOPPED;
    if (state)
        return arch_is_futex(system_call) ? WIRE_WAIT_LOCK : WIRE_WAIT_BLOCKED; /* a lock of which kind is seen later */
    return WIRE_WAIT_PREEMPTED;
}

/* Adds the entry of a thread: it is counted first, as in follow(). Not 0: it is there already, or there is no room. */
static __always_inline long add_thread(__u32 tid, __u32 tgid, const void *thread)
{
    count_followed(tgid, 1);
    long refused = bpf_map_update_elem(&waits, &tid, thread, BPF_NOEXIST);
    if (refused)
        count_followed(tgid, -1);
    return refused;
}

static __always_inline void forget_thread(__u32 tid, __u32 tgid)
{
    if (!bpf_map_delete_elem(&waits, &tid))
        count_followed(tgid, -1);
}

/*
 * Sends the sums of a thread that has ended or is not followed any more, and forgets it. Where the ring is full they stay, and
 * user space takes them from there; but a process that has had its share must not fill the table, either.
 */
static __noinline int end_thread(__u32 tid, __u64 now_ns)
{
    struct wire_thread *t = bpf_map_lookup_elem(&waits, &tid);
    __u32 tgid = t ? t->tgid : 0;

    if (!t)
        return 0;
    enum ring_room room = send_thread(t, now_ns);
    if (room == RING_ROOM_OF_OTHERS)
        count_loss(LOSS_wait_untracked);
    if (room != RING_ROOM_NONE) {
        forget_thread(tid, tgid);
    } else {
        t->ended = 1;
        __sync_fetch_and_add(&wait_left, 1);
    }
    return 0;
}

/* Sets whose entry it is, which begins at `since_ns`. */
static __always_inline void thread_begin(struct wire_thread *t, struct task_struct *task, __u64 since_ns)
{
    t->tgid = task->tgid;
    t->tid = task->pid;
    t->start_boottime_ns = task->group_leader->start_boottime;
    t->exec_generation = task->self_exec_id;
    t->since_ns = t->switched_ns = since_ns;
}

/* The entry of a thread, made where there is none; NULL: there are too many threads. */
static __noinline struct wire_thread *entry_of(struct task_struct *task, __u64 now_ns)
{
    __u32 tid = task->pid;
    struct wire_thread *t = bpf_map_lookup_elem(&waits, &tid);

    if (t && !t->ended && t->exec_generation == task->self_exec_id)
        return t;
    if (t) { /* it executes another program now, or it is another thread */
        __u32 tgid = t->tgid;
        gil_return(t, now_ns);
        if (send_thread(t, now_ns) != RING_ROOM)
            count_loss(LOSS_wait_untracked);
        forget_thread(tid, tgid);
    }
    add_thread(tid, task->tgid, (const void *)&wait_nobody);
    t = bpf_map_lookup_elem(&waits, &tid);
    if (!t) {
        count_loss(LOSS_wait_untracked);
        return 0;
    }
    thread_begin(t, task, now_ns);
    t->runs = 1;
    return t;
}

/* Whether the kernel keeps account of when threads were queued, and when they came onto a CPU. */
static __always_inline int has_queue_clock(struct task_struct *task)
{
    return bpf_core_field_exists(task->sched_info.last_queued) && bpf_core_field_exists(task->se.cfs_rq) &&
           bpf_core_field_exists(task->se.cfs_rq->rq);
}

/* How long the kernel says that the thread has been in run queues in all, as it comes onto a CPU or leaves it. */
static __always_inline __u64 queued_ns(struct task_struct *task, int comes)
{
    if (!has_queue_clock(task))
        return 0;
    __u64 sum = task->sched_info.run_delay, since = task->sched_info.last_queued;
    /* The kernel adds the last time in the queue just after the tracepoint, by the queue's own clock. */
    if (comes && since) {
        __u64 clock = task->se.cfs_rq->rq->clock;
        sum += clock > since ? clock - since : 0;
    }
    return sum;
}

/* ---- call sites ---- */

/* Of the thread, the wait's kind and the system call, whatever called it. */
static __always_inline __u64 site_of_call(const struct wire_thread *t)
{
    return (__u64)t->tid << 32 | t->kind << 24 | ((__u32)t->system_call & 0xffffff);
}

/*
 * The key of the site, once the wait's kind is known; until then t->site is that of native code. Where a thread was preempted
 * says nothing of the wait: then the thread is the site. A function of its own, as what it reads lies on the stack.
 */
static __noinline __u64 site_of(const struct wire_process *process, const struct wire_thread *t)
{
    if (t->kind == WIRE_WAIT_PREEMPTED)
        return (__u64)t->tid << 32 | t->kind << 24;
    __u64 python = python_site(process, t->tstate, t->kind == WIRE_WAIT_GIL);
    return (python ? python : t->site) ^ site_of_call(t);
}

/* A site that is among those that the thread met lately; NULL: it is not. */
static __always_inline struct wire_wait_site *near_site(struct wire_thread *t, __u64 key)
{
    for (int i = 0; i < WIRE_NEAR_SITES; i++) {
        if (t->near[i].key == key)
            return &t->near[i].site;
    }
    return 0;
}

/* Stores a site that is not near any more. */
static __noinline int put_away(struct wire_near_site *near)
{
    __u64 key = near->key;
    struct wire_wait_site *stored = bpf_map_lookup_elem(&wait_sites, &key);

    if (stored)
        *stored = near->site;
    else if (near->site.count)
        bpf_map_update_elem(&wait_sites, &key, &near->site, BPF_ANY);
    return 0;
}

/*
 * The site of the wait that the thread is in; its count is 0 where none is known. A program that often switches does so at a
 * few places, so those that a thread met last are with the thread, which is found anyway.
 */
static __always_inline struct wire_wait_site *site_of_wait(struct wire_thread *t)
{
    __u64 key = t->site;
    struct wire_wait_site *site = near_site(t, key);

    if (site)
        return site;
    struct wire_near_site *near = &t->near[t->near_next++ & (WIRE_NEAR_SITES - 1)];
    if (near->key)
        put_away(near);
    struct wire_wait_site *stored = bpf_map_lookup_elem(&wait_sites, &key);
    near->key = key;
    near->site = stored ? *stored : (struct wire_wait_site){0};
    if (stored)
        stored->owed_ns = stored->owed_queue_ns = stored->owed_blame_ns = 0;
    return &near->site;
}

/* Whether this wait is to have a stack; with what chance is kept. */
static __always_inline int is_due(struct wire_process *process, struct wire_thread *t, __u32 second)
{
    begin_second(process, second);
    t->chance = WIRE_CHANCE_ALL;
    if (t->stacks >= WAIT_FIRST || process->wait_stacks >> WAIT_SECOND_SHIFT)
        t->chance = wait_chance(sample_periods[wait_event & (WIRE_EVENT_MAX - 1)], site_of_wait(t), process->wait_stacks);
    return t->chance == WIRE_CHANCE_ALL || bpf_get_prandom_u32() < t->chance;
}

/* ---- the end of a wait ---- */

static __always_inline int send_wait(struct wire_wait *wait)
{
    struct scratch *s = scratch_enter();

    if (!s)
        return 0;
    int failed = ring_send(wait, sizeof *wait) != 0;
    scratch_leave(s);
    return !failed;
}

/* A wait is over that lasted from wait->out_ns to wait->in_ns: it is sent, or its call site owes it. */
static __always_inline void settle(struct wire_thread *t, struct wire_wait *wait)
{
    __u64 len_ns = wait->in_ns - wait->out_ns, own_ns = len_ns - wait->queue_ns;
    struct wire_wait_site *site = site_of_wait(t);
    int sent = 0;

    wait_site_add(site, len_ns);
    wait->owed_ns = site->owed_ns;
    wait->owed_queue_ns = site->owed_queue_ns;
    wait->owed_blame_ns = site->owed_blame_ns;
    if (t->has_stack && !(sent = send_wait(wait)))
        count_switch(0, WIRE_EVENT_RING_FULL); /* its sample lacks its weight, and is not written */
    site->owed_ns = sent ? 0 : site->owed_ns + own_ns;
    site->owed_queue_ns = sent ? 0 : site->owed_queue_ns + wait->queue_ns;
    site->owed_blame_ns = sent ? 0 : site->owed_blame_ns + wait->blame_ns;
}

/*
 * Accounts for a thread that has come onto a CPU: at `in_ns`, when its time in run queues was `queued_ns` in all. A function
 * of its own, as it is called for the thread that leaves, too.
 */
static __noinline int come_back(struct wire_thread *t, __u64 in_ns, __u64 queued_ns)
{
    __u64 kind = t->kind, len_ns = in_ns - t->switched_ns;
    struct wire_wait wait = {.type = WIRE_WAIT, .kind = kind, .tgid = t->tgid, .tid = t->tid, .out_ns = t->switched_ns,
                             .in_ns = in_ns, .blame_ns = gil_return(t, in_ns)};

    if (kind != WIRE_WAIT_PREEMPTED && queued_ns > t->queued_ns) {
        wait.queue_ns = queued_ns - t->queued_ns;
        if (wait.queue_ns > len_ns)
            wait.queue_ns = len_ns;
    }
    if (kind != WIRE_WAIT_PREEMPTED) {
        wait.waker_kind = t->waker_kind;
        wait.waker_tgid = t->waker_tgid;
        wait.waker_tid = t->waker_tid;
    }
    t->waker_kind = WIRE_WAKER_NONE;
    t->runs = 1;
    t->switched_ns = in_ns;
    t->waits[kind & (WIRE_WAIT_KINDS - 1)].ns += len_ns - wait.queue_ns;
    t->waits[kind & (WIRE_WAIT_KINDS - 1)].count++;
    t->waits[WIRE_WAIT_RUN_QUEUE].ns += wait.queue_ns;
    t->waits[WIRE_WAIT_RUN_QUEUE].count += wait.queue_ns != 0;
    settle(t, &wait);
    return 0;
}

/* A switch was not reported, so what the thread did since its last one is not known: its account begins anew. */
static __always_inline void skip_unknown(struct wire_thread *t, __u64 now_ns)
{
    gil_return(t, now_ns);
    t->since_ns += now_ns - t->switched_ns;
    t->switched_ns = now_ns;
    t->runs = 1;
    count_loss(LOSS_wait_untracked);
}

/* ---- the thread that leaves ---- */

/* The user registers of the thread that leaves: where the kernel keeps them, or before 5.15 a copy. */
static __always_inline const struct pt_regs *user_registers(struct task_struct *task, struct pt_regs *copy)
{
    if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
        return (const struct pt_regs *)bpf_task_pt_regs(task);
    if (bpf_probe_read_kernel(copy, sizeof *copy, (char *)task->stack + ARCH_KERNEL_STACK_BYTES - sizeof *copy))
        __builtin_memset(copy, 0, sizeof *copy);
    return copy;
}

/*
 * The thread's switch onto its CPU was not reported: some kernels leave switches away from some threads out. The kernel
 * knows when it was, by the run queue's clock.
 */
static __always_inline void came_unseen(struct task_struct *task, struct wire_thread *t, __u64 now_ns)
{
    if (t->kind && has_queue_clock(task)) {
        __u64 clock = task->se.cfs_rq->rq->clock, came = task->sched_info.last_arrival, ran_ns = clock - came;
        if (came && came <= clock && ran_ns <= now_ns - t->switched_ns) {
            come_back(t, now_ns - ran_ns, queued_ns(task, 0));
            return;
        }
    }
    skip_unknown(t, now_ns);
}

/*
 * Accounts for the thread that leaves its CPU. Returns its entry; NULL: it has ended, or there is no room for it. A function
 * of its own, so that its variables do not lie on the stack while the walkers run.
 */
static __noinline struct wire_thread *leave_cpu(struct switch_arguments *arguments, __u64 now_ns)
{
    struct task_struct *prev = arguments->prev;
    struct wire_thread *t = entry_of(prev, now_ns);
    __u32 state = state_of(arguments);
    struct pt_regs copy;

    if (!t)
        return 0;
    if (!t->runs)
        came_unseen(prev, t, now_ns);
    t->on_cpu_ns += now_ns - t->switched_ns;
    t->runs = 0;
    t->switched_ns = now_ns;
    t->kind = WIRE_WAIT_NONE;
    if (state & TASK_DEAD) {
        end_thread(prev->pid, now_ns);
        return 0;
    }
    const struct pt_regs *regs = user_registers(prev, &copy);
    t->system_call = arch_system_call(regs);
    t->kind = kind_of(state, t->system_call);
    t->futex = arch_futex_address(t->system_call, regs);
    /* Who woke it is known already where another CPU does so now. Else that was before it had quite decided to wait. */
    if (t->waker_kind && task_state(prev) != TASK_WAKING)
        t->waker_kind = WIRE_WAKER_NONE;
    t->queued_ns = queued_ns(prev, 0);
    t->has_stack = 0;
    t->site = native_site(regs);
    return t;
}

/* Another state may be of another interpreter, whose lock lies elsewhere; not if the lock was looked for just now. */
static __always_inline void remember_tstate(struct wire_thread *t, __u64 tstate)
{
    if (t->tstate != tstate && t->gil_role == WIRE_GIL_NEITHER)
        t->gil = 0;
    t->tstate = tstate;
}

static __always_inline enum wire_event_stat take_at_switch(void *ctx, struct wire_process *process, struct wire_thread *t,
                                                           __u64 now_ns)
{
    struct scratch *s = scratch_enter();

    if (!s)
        return WIRE_EVENT_NESTED;
    enum ring_room room = room_for(process);
    __u64 sent = 0;
    if (room == RING_ROOM) {
        __sync_fetch_and_add(&process->wait_stacks, 1);
        task_read(&s->facts);
        sample_begin(&s->sample, process, &s->facts, wait_event, now_ns);
        s->sample.flags |= WIRE_WAITS;
        s->sample.wait_kind = t->kind;
        s->sample.system_call = t->system_call;
        s->sample.wait_site = t->site;
        s->sample.wait_chance = t->chance;
        s->sample.futex = t->futex;
        s->sample.period = 0; /* not known yet */
        sent = take_stacks(s, ctx, 0, process);
        remember_tstate(t, s->sample.thread_handle ? s->walk.result.tstate : 0);
        room_taken(process, sent);
        t->has_stack = sent != 0;
        t->stacks += t->has_stack;
        if (t->gil_role == WIRE_GIL_HOLDS && (s->sample.flags & (WIRE_GIL_KNOWN | WIRE_GIL)) == WIRE_GIL_KNOWN)
            t->gil_role = WIRE_GIL_NEITHER; /* the walk looks closer, where a thread has several states */
    }
    scratch_leave(s);
    if (room == RING_ROOM_OF_OTHERS)
        return WIRE_EVENT_THINNED;
    return sent ? WIRE_EVENT_SAMPLED : WIRE_EVENT_RING_FULL;
}

/* The thread of a followed process leaves its CPU. Returns whether a stack was to be taken. */
static __always_inline int leave(struct switch_arguments *arguments, struct wire_process *process, __u64 now_ns)
{
    struct wire_thread *t = leave_cpu(arguments, now_ns);

    if (!t)
        return 0;
    if (t->kind == WIRE_WAIT_LOCK && gil_is_waited_for(process, t, t->futex, now_ns))
        t->kind = WIRE_WAIT_GIL;
    else if (t->kind == WIRE_WAIT_LOCK && world_is_waited_for(process, t))
        t->kind = WIRE_WAIT_STOP_THE_WORLD;
    gil_leave(arguments->prev, process, t, now_ns);
    t->site = site_of(process, t);
    int due = is_due(process, t, now_ns >> 30);
    count_switch(1, due ? take_at_switch(arguments, process, t, now_ns) : WIRE_EVENT_THINNED);
    return due;
}

/* ---- the thread that comes ---- */

/* Accounts for the thread that comes onto the CPU. */
static __noinline int enter_cpu(struct switch_arguments *arguments, __u64 now_ns)
{
    struct task_struct *next = arguments->next;
    __u32 tgid = next->tgid, tid = next->pid;
    struct wire_thread *t = bpf_map_lookup_elem(&waits, &tid);

    if (!t || t->ended) {
        if (bpf_map_lookup_elem(&processes, &tgid))
            entry_of(next, now_ns);
        return 0;
    }
    if (!t->runs && t->kind)
        come_back(t, now_ns, queued_ns(next, 1));
    else if (bpf_map_lookup_elem(&processes, &tgid))
        skip_unknown(t, now_ns);
    else
        end_thread(tid, now_ns); /* its process is not followed any more */
    return 0;
}

SEC("tp_btf/sched_switch")
int switched(struct switch_arguments *arguments)
{
    if (!wait_enabled)
        return 0;
    __u32 tgid = arguments->prev->tgid;
    int leaves = may_be_followed(tgid), comes = may_be_followed(arguments->next->tgid);
    if (!leaves && !comes)
        return 0;
    __u64 now_ns = bpf_ktime_get_ns();
    struct wire_process *process = leaves ? bpf_map_lookup_elem(&processes, &tgid) : 0;

    int has_stack = 0;

    if (process)
        has_stack = leave(arguments, process, now_ns);
    else if (leaves && state_of(arguments) & TASK_DEAD)
        end_thread(arguments->prev->pid, now_ns); /* its process was not followed any more */
    if (comes)
        enter_cpu(arguments, now_ns);
    if (sample_timed && has_stack)
        count_time(WIRE_STAT_CPU_NS, bpf_ktime_get_ns() - now_ns);
    else if (sample_timed)
        count_look_time(now_ns);
    return 0;
}

#endif
