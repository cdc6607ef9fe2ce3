/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * With what chance a wait has a stack. Built for BPF, and for the host, where tests try it on made-up waits.
 *
 * A site is to have a stack for each period that is waited there: the chance is the mean of its waits over the period. The
 * more stacks a process has had in this second, the longer the period. The chance goes with the stack to user space, where
 * a stack stands for as many waits as the chance is rare. So it may be any that does not depend on this wait itself.
 */
#ifndef BPF_WAIT_CHANCE_H
#define BPF_WAIT_CHANCE_H

#include "bpf/walk.h"
#include "bpf/wire.h"

/* After so many stacks of a process in a second the period is doubled for the rest of that second; and again after as many. */
#define WAIT_SECOND_SHIFT 9
#define WAIT_DOUBLINGS_MAX 20
/* How many waits the mean at a site is of. */
#define WAIT_MEAN_OF 64
/* A wait that is shorter is cheaper to record than to thin. */
#define WAIT_PERIOD_MIN_NS 4096
#define WAIT_PERIOD_MAX_NS (1ull << 43)
/* One of so many waits has a stack however short they are: else one of them that is long would stand for too much. */
#define WAIT_CHANCE_MIN (WIRE_CHANCE_ALL / 512)

/* Of WIRE_CHANCE_ALL. `site` is NULL where none is known; the process has had so many `stacks` in this second. */
WALK_INLINE PY_U32 wait_chance(PY_U64 period_ns, const struct wire_wait_site *site, PY_U32 stacks)
{
    PY_U32 doublings = stacks >> WAIT_SECOND_SHIFT;

    if (period_ns < WAIT_PERIOD_MIN_NS)
        return WIRE_CHANCE_ALL;
    if (doublings > WAIT_DOUBLINGS_MAX)
        doublings = WAIT_DOUBLINGS_MAX;
    if (period_ns > WAIT_PERIOD_MAX_NS)
        period_ns = WAIT_PERIOD_MAX_NS;
    if (!site || !site->count)
        return WIRE_CHANCE_ALL >> doublings;
    PY_U64 mean_ns = site->mean_ns >> doublings, least = WAIT_CHANCE_MIN >> doublings;
    if (mean_ns >= period_ns)
        return WIRE_CHANCE_ALL;
    PY_U64 chance = (mean_ns << 20) / (period_ns >> 12); /* the product fits */
    return chance < least ? least : chance < WIRE_CHANCE_ALL ? chance : WIRE_CHANCE_ALL;
}

/* A wait at the site is over. */
WALK_INLINE void wait_site_add(struct wire_wait_site *site, PY_U64 len_ns)
{
    PY_U64 count = ++site->count < WAIT_MEAN_OF ? site->count : WAIT_MEAN_OF;

    site->mean_ns = (site->mean_ns * (count - 1) + len_ns) / count;
}

#endif
