/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lock of an interpreter (GIL): which waits are for it. And which are for the world to stop, where there is no such lock.
 *
 * CPython's lock is made of condition variables and mutexes that lie side by side in memory, and threads wait for all of
 * them in futex(). So the address that a thread waits on says whether it waits for the lock, in builds without symbols, too.
 * Since 3.12 interpreters of one process may have locks of their own: then the thread's own interpreter says where its lock
 * lies.
 */
#ifndef BPF_SAMPLER_GIL_H
#define BPF_SAMPLER_GIL_H

#include "bpf/sampler_take.h"

/* Where the lock lies of a process, or of one of its interpreters; 0: not known. */
static __always_inline __u64 gil_of(const struct wire_process *process, __u64 interpreter)
{
    __u64 at = process->gil, found = 0;

    if (process->gil_kind == PY_GIL_RANGE)
        return at;
    if (process->gil_kind == PY_GIL_INTERPRETER)
        at = interpreter ? interpreter + at : 0;
    else if (process->gil_kind != PY_GIL_POINTER)
        at = 0;
    if (!at || bpf_probe_read_user(&found, sizeof found, (void *)at) || !found)
        return 0;
    return found + process->gil_skip;
}

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
    if (state == PY_THREAD_SUSPENDED)
        return 1;
    return !bpf_probe_read_user(&interpreter, sizeof interpreter, (void *)(t->tstate + l->tstate_interp)) &&
           !bpf_probe_read_user(&requester, sizeof requester, (void *)(interpreter + l->interp_requester)) &&
           requester == t->tstate &&
           !bpf_probe_read_user(&stopped, sizeof stopped,
                                (void *)(interpreter + l->interp_requester - WORLD_STOPPED_BEFORE_REQUESTER)) &&
           !stopped;
}

#endif
