/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For how long it is known which code object lies at an address.
 *
 * CPython 3.12 and later number code objects: each that is made takes its co_version from a counter, which goes up by one. A
 * frame holds the code object that it runs. So while the counter stands, whatever code object a frame runs was there when the
 * counter was read before, at the same address. What was read of it then is still true, since nothing of it that the walk looks
 * at changes while it runs. This costs one read for a sample, in place of one for each code object.
 *
 * The counter is read before the first code object: one that is made between those reads has a number that the next sample
 * takes for news. Only the sampler relies on it, for the thread does not run while it looks.
 *
 * It says nothing
 * - after an overflow, which stops it at 0;
 * - where there are or were several interpreters: each has its own counter (3.12: several change one without a lock), and they
 *   may use the same memory; nor where two builds of CPython run in one process;
 * - where the interpreter may be ended and begun anew, which resets it: that is for programs that have Python in them, not for
 *   `python` itself (in 3.12 it is a static variable, which stays);
 * - in free-threaded builds, where nothing proves that a code object is whole that another thread has just numbered;
 * - where it is not above the co_version of each code object that is met, or higher than programs come to: then it is something
 *   else, such as half of an address, which might never change.
 */
#ifndef BPF_SAMPLER_CODES_H
#define BPF_SAMPLER_CODES_H

#include "bpf/sampler_state.h"

#define CODE_COUNTER_MAX (1 << 24) /* a program that has made more code objects makes them all the time: it gains nothing here */

/* The process's counter of code objects; 0: it has none that says anything. */
static __always_inline __u32 codes_counter(struct py_walk *w)
{
    const struct wire_process *p = &w->config.process;
    __u64 address = p->code_counter;
    __u32 counter;

    if (!w->result.alone || p->flags & (WIRE_PROCESS_COUNTER_WRONG | WIRE_PROCESS_RIVAL) || w->config.layout.free_threaded)
        return 0;
    if (!address && p->flags & WIRE_PROCESS_BEGINS_ONCE)
        address = w->result.interpreter + w->config.layout.interp_code_counter;
    if (!address || WALK_READ(w, &counter, sizeof counter, address))
        return 0;
    return counter < CODE_COUNTER_MAX ? counter : 0;
}

static __always_inline struct code_owner *codes_owner(struct scratch *s)
{
    __u64 slot = s->sample.tgid;

    WALK_BOUND(slot, CODE_OWNERS - 1);
    return &s->code_owners[slot];
}

/* Before the walk over the frames: whether what is known of code objects is still true. */
static __always_inline void codes_begin(struct scratch *s)
{
    struct walk_codes *c = &s->walk.codes;
    struct code_owner *o = codes_owner(s);

    c->doubted = c->wrong = 0;
    c->counter = codes_counter(&s->walk);
    if (!c->counter)
        return;
    if (o->counter == c->counter && o->tgid == s->sample.tgid && o->start_boottime_ns == s->sample.start_boottime_ns &&
        o->exec_generation == s->sample.exec_generation && o->generation == s->code_generation) {
        c->epoch = o->epoch;
        return;
    }
    c->epoch = ++c->newest;
    o->start_boottime_ns = s->sample.start_boottime_ns;
    o->exec_generation = s->sample.exec_generation;
    o->epoch = c->epoch;
    o->tgid = s->sample.tgid;
    o->generation = s->code_generation;
    o->counter = c->counter;
}

/* The counter is none. */
static __attribute__((noinline)) int codes_refuse(struct scratch *s)
{
    __u32 tgid = s->sample.tgid;
    struct wire_process *process = bpf_map_lookup_elem(&processes, &tgid);

    if (process && !(s->sample.flags & WIRE_STALE))
        process->flags |= WIRE_PROCESS_COUNTER_WRONG;
    return 0;
}

/* After the walk. */
static __always_inline void codes_end(struct scratch *s)
{
    struct walk_codes *c = &s->walk.codes;

    if (!c->counter || (!c->doubted && !c->wrong))
        return;
    codes_owner(s)->counter = 0;
    if (c->wrong)
        codes_refuse(s);
}

#endif
