/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lock of an interpreter (GIL): which waits are for it.
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

/* Whether the current thread, which leaves its CPU to wait on the futex at `address`, waits for its interpreter's lock. */
static __always_inline int gil_is_waited_for(struct wire_process *process, struct wire_thread *t, __u64 address, __u64 now_ns)
{
    if (!address || !gil_is_known(process, t))
        return 0;
    if (process->gil_kind != PY_GIL_INTERPRETER)
        t->gil = gil_of(process, 0);
    else if (!t->gil || address - t->gil >= process->gil_len)
        gil_find(process, t, now_ns);
    return t->gil && address - t->gil < process->gil_len;
}

#endif
