/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lock of an interpreter (GIL) at switches between threads: which waits are for it, and how long others waited for it
 * while the thread that holds it was off its CPU. And which are for the world to stop, where there is no such lock.
 *
 * CPython's lock is made of condition variables and mutexes that lie side by side in memory, and threads wait for all of
 * them in futex(). So the address that a thread waits on says whether it waits for the lock, in builds without symbols, too.
 * Since 3.12 interpreters of one process may have locks of their own: then the thread's own interpreter says where its lock
 * lies.
 *
 * A thread counts as waiting from when it leaves its CPU until it is back on one, whether its stack was taken or not. Each
 * that was counted is so again, with the opposite sign, when it comes back, which it does before it ends.
 */
#ifndef BPF_SAMPLER_GIL_H
#define BPF_SAMPLER_GIL_H

#include "bpf/sampler_take.h"

/* So many locks a process may have counted: it names their places, and might name very many. */
#define GILS_OF_PROCESS 64
/* So many threads are counted that wait for one lock. Each CPU may find one less at the same time, and Linux has no more of them. */
#define GIL_WAITERS_COUNTED (WIRE_GIL_WAITERS_MAX - WIRE_HIT_CPUS)

/* Whether what is known of the process is about the program that the thread runs. */
static __always_inline int gil_is_known(const struct wire_process *process, const struct wire_thread *t)
{
    return process->gil_kind != PY_GIL_NONE &&
           (!(process->flags & WIRE_PROCESS_BOUND) || process->exec_generation == t->exec_generation);
}

/*
 * Finds the state of the current thread, which leaves its CPU, and the lock of its interpreter. It costs some reads, as the
 * thread may run in another interpreter than when that was asked last.
 */
static __noinline int gil_find(struct wire_process *process, struct wire_thread *t, __u64 now_ns)
{
    struct scratch *s = scratch_enter();

    if (!s)
        return 0;
    task_read(&s->facts);
    sample_begin(&s->sample, process, &s->facts, 0, now_ns);
    registers_take(s, 0);
    if (python_begin(s, process)) {
        find_tstate();
        t->tstate = s->walk.result.tstate;
        t->gil = 0;
        if (t->tstate) {
            walk_interpreter(&s->walk);
            t->gil = gil_of(process, s->walk.result.interpreter);
        }
    }
    scratch_leave(s);
    return 0;
}

/*
 * musl's condition variables (src/thread/pthread_cond_timedwait.c): a thread that waits on one sleeps on a word in its own
 * stack, `barrier` of a struct waiter {prev, next, state, barrier}. These are in a list, the newest first, which begins in the
 * variable. Others can come in front only in the moment between a thread's entry and its sleep.
 */
#define MUSL_COND_HEAD 8
#define MUSL_WAITER_NEXT 8
#define MUSL_WAITER_BARRIER 20
#define MUSL_WAITERS_MAX 16

/* Whether a thread that sleeps on the word at `address` waits on the condition variable at `cond`. */
static __noinline int musl_cond_has_waiter(__u64 cond, __u64 address)
{
    __u64 at = cond + MUSL_COND_HEAD, waiter = 0;

    for (int i = 0; i < MUSL_WAITERS_MAX; i++) {
        if (bpf_probe_read_user(&waiter, sizeof waiter, (void *)at) || !waiter)
            return 0;
        if (waiter + MUSL_WAITER_BARRIER == address)
            return 1;
        at = waiter + MUSL_WAITER_NEXT;
    }
    return 0;
}

/* Whether a thread that sleeps on the word at `address` waits for the lock that lies at `gil`. */
static __always_inline int gil_has_word(const struct wire_process *process, __u64 gil, __u64 address)
{
    if (address - gil < process->gil_len)
        return 1;
    return process->flags & WIRE_PROCESS_MUSL && process->gil_len == PY_GIL_LEN_BYTES &&
           (musl_cond_has_waiter(gil, address) || musl_cond_has_waiter(gil + PY_GIL_SWITCH_COND, address));
}

/* `main` follows `head` in struct pyinterpreters (Include/internal/pycore_runtime.h, 3.12+). */
#define INTERPRETERS_MAIN 8

/*
 * The lock of the main interpreter: a thread waits for that one, too, while its state is of another interpreter, as when it
 * imports a built-in module there. 0: not known.
 */
static __noinline __u64 gil_of_main(const struct wire_process *process)
{
    __u32 index = process->layout;
    struct py_layout *l = bpf_map_lookup_elem(&layouts, &index);
    __u64 interpreter = 0;

    if (!l || bpf_probe_read_user(&interpreter, sizeof interpreter,
                                  (void *)(process->runtime + l->runtime_interpreters_head + INTERPRETERS_MAIN)))
        return 0;
    return gil_of(process, interpreter);
}

/* Whether the current thread, which leaves its CPU to wait on the futex at `address`, waits for its interpreter's lock. */
static __always_inline int gil_is_waited_for(struct wire_process *process, struct wire_thread *t, __u64 address, __u64 now_ns)
{
    if (!address || !gil_is_known(process, t))
        return 0;
    if (process->gil_kind != PY_GIL_INTERPRETER)
        t->gil = gil_of(process, 0);
    else if (!t->gil || !gil_has_word(process, t->gil, address))
        gil_find(process, t, now_ns);
    if (t->gil && gil_has_word(process, t->gil, address))
        return 1;
    __u64 other = process->gil_kind == PY_GIL_INTERPRETER ? gil_of_main(process) : 0;
    if (!other || !gil_has_word(process, other, address))
        return 0;
    t->gil = other;
    return 1;
}

/* struct _stoptheworld_state (Include/internal/pycore_interp_structs.h, 3.13: pycore_interp.h): from requester back. */
#define WORLD_STOPPED_BEFORE_REQUESTER 14

/*
 * Whether the current thread, which leaves its CPU to wait on a futex, waits because of a stopped world: it may not run until
 * the world goes on, or it has the world stopped, and not all threads have. In a free-threaded build both sleep on words of
 * their own, so the thread's state says it. That state must be known: gil_is_waited_for() comes first.
 */
static __noinline int world_is_waited_for(struct wire_process *process, struct wire_thread *t)
{
    __u32 index = process->layout;
    struct py_layout *l = bpf_map_lookup_elem(&layouts, &index);
    __u64 interpreter = 0, requester = 0;
    __u32 state = 0;
    __u8 stopped = 0;

    if (!l || !l->tstate_state || !t->tstate ||
        bpf_probe_read_user(&state, sizeof state, (void *)(t->tstate + l->tstate_state)))
        return 0;
    if (state == PY_THREAD_SUSPENDED || state == PY_THREAD_SUSPENDED_WAITING)
        return 1;
    return !bpf_probe_read_user(&interpreter, sizeof interpreter, (void *)(t->tstate + l->tstate_interp)) &&
           !bpf_probe_read_user(&requester, sizeof requester, (void *)(interpreter + l->interp_requester)) &&
           requester == t->tstate &&
           !bpf_probe_read_user(&stopped, sizeof stopped,
                                (void *)(interpreter + l->interp_requester - WORLD_STOPPED_BEFORE_REQUESTER)) &&
           !stopped;
}

/* ---- who holds it ---- */

/* Up to 3.11 the runtime names the state of the thread that holds the lock, and the state the thread. */
static __always_inline int is_current_of_runtime(const struct wire_process *process, const struct py_layout *l,
                                                 __u64 thread_pointer)
{
    __u64 tstate = 0, handle = 0;

    return l->runtime_tstate_current != PY_NONE &&
           !bpf_probe_read_user(&tstate, sizeof tstate, (void *)(process->runtime + l->runtime_tstate_current)) && tstate &&
           !bpf_probe_read_user(&handle, sizeof handle, (void *)(tstate + l->tstate_thread_id)) &&
           handle == ARCH_PTHREAD_SELF(thread_pointer);
}

/* From 3.12 on a variable of the thread names its state while it holds the lock; 0: it does not. */
static __always_inline __u64 current_of_thread(const struct wire_process *process, __u64 thread_pointer)
{
    struct scratch *s = scratch_enter();
    __u64 tstate = 0;

    if (!s)
        return 0;
    s->walk.config.thread_pointer = thread_pointer;
    if (walk_read_tls(&s->walk, process->tls_kind, process->tls_offset, process->tls_module, &tstate))
        tstate = 0;
    scratch_leave(s);
    return tstate;
}

/* Whether the thread, which leaves its CPU, holds its interpreter's lock; then t->gil is that lock. */
static __always_inline int gil_is_held(struct task_struct *prev, const struct wire_process *process, struct wire_thread *t)
{
    __u32 index = process->layout;
    __u64 interpreter = 0, thread_pointer = prev->ARCH_TASK_THREAD_POINTER;

    if (!gil_is_known(process, t) || prev->signal->nr_threads < 2)
        return 0; /* nobody else is there who could wait for it */
    struct py_layout *l = bpf_map_lookup_elem(&layouts, &index);
    if (!l || l->free_threaded)
        return 0; /* free-threaded: threads run Python without it, unless it was asked for */
    if (process->tls_kind == PY_TLS_NONE) {
        t->gil = gil_of(process, 0);
        return t->gil && is_current_of_runtime(process, l, thread_pointer);
    }
    __u64 tstate = current_of_thread(process, thread_pointer);
    if (!tstate || bpf_probe_read_user(&interpreter, sizeof interpreter, (void *)(tstate + l->tstate_interp)))
        return 0;
    t->tstate = tstate;
    t->gil = gil_of(process, interpreter);
    return t->gil != 0;
}

/* ---- accounts ---- */

/* What is counted of the lock t->gil; NULL: the process has too many. */
static __always_inline struct wire_gil *gil_account(struct wire_process *process, const struct wire_thread *t, __u64 now_ns)
{
    struct wire_gil_key key = {.address = t->gil, .tgid = t->tgid};
    struct wire_gil *gil = bpf_map_lookup_elem(&gils, &key), first = {.since_ns = now_ns};

    if (gil)
        return gil;
    if (process->gils < GILS_OF_PROCESS && !bpf_map_update_elem(&gils, &key, &first, BPF_NOEXIST))
        __sync_fetch_and_add(&process->gils, 1);
    gil = bpf_map_lookup_elem(&gils, &key);
    if (!gil)
        count_loss(LOSS_gil_untracked);
    return gil;
}

/*
 * The thread leaves its CPU, and what it waits for is known: counts it among those that wait for the lock or, if it holds
 * the lock, remembers how long others have waited for it so far.
 */
static __noinline int gil_leave(struct task_struct *prev, struct wire_process *process, struct wire_thread *t, __u64 now_ns)
{
    int waits = t->kind == WIRE_WAIT_GIL;
    struct wire_gil *gil = waits || gil_is_held(prev, process, t) ? gil_account(process, t, now_ns) : 0;

    t->gil_role = WIRE_GIL_NEITHER;
    if (!gil)
        return 0;
    if (waits && wire_gil_waiters(gil->waits) >= GIL_WAITERS_COUNTED) {
        count_loss(LOSS_gil_untracked);
        return 0;
    }
    t->gil_since_ns = gil->since_ns;
    if (waits) {
        t->gil_role = WIRE_GIL_WAITS;
        __sync_fetch_and_add(&gil->waits, wire_gil_begins(now_ns));
    } else {
        t->gil_role = WIRE_GIL_HOLDS;
        t->gil_waits = gil->waits;
    }
    return 0;
}

/* The thread is back at `in_ns`. Returns how long others waited meanwhile, if it holds the lock that they waited for. */
static __always_inline __u64 gil_return(struct wire_thread *t, __u64 in_ns)
{
    struct wire_gil_key key = {.address = t->gil, .tgid = t->tgid};
    __u32 role = t->gil_role;

    if (role == WIRE_GIL_NEITHER)
        return 0;
    t->gil_role = WIRE_GIL_NEITHER;
    struct wire_gil *gil = bpf_map_lookup_elem(&gils, &key);
    if (!gil || gil->since_ns != t->gil_since_ns)
        return 0; /* its process was not followed for a while */
    if (role == WIRE_GIL_HOLDS)
        return wire_gil_waited_ns(t->gil_waits, t->switched_ns, gil->waits, in_ns);
    __sync_fetch_and_add(&gil->waits, wire_gil_ends(in_ns));
    return 0;
}

#endif
