/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/when/cpu_clocks.h"

#include <time.h>

#include "formats/base/clock.h"

void cpu_clocks_deinit(struct cpu_clocks *c)
{
    VEC_DEINIT(&c->by_slot);
}

/* False: the process is gone. */
static bool read_clock(const struct process *p, uint64_t *cpu_ns)
{
    struct timespec t;
    clockid_t clock;

    if (clock_getcpuclockid((pid_t)p->tgid, &clock) || clock_gettime(clock, &t))
        return false;
    *cpu_ns = timespec_ns(t);
    return true;
}

/*
 * What a process has run of which there was no look: all of its clock, if it began after the last one. A program that another
 * one became by exec has that one's clock, so it counts no more than a single thread can have run.
 */
static uint64_t first_ns(const struct cpu_clocks *c, const struct process *p, uint64_t cpu_ns, uint64_t time_ns)
{
    if (!c->look_ns || p->since_ns < c->look_ns || p->since_ns > time_ns)
        return 0;
    return cpu_ns < time_ns - p->since_ns ? cpu_ns : time_ns - p->since_ns;
}

struct error *cpu_clocks_look(struct cpu_clocks *c, struct processes *processes, uint64_t time_ns)
{
    uint32_t cursor = 0;
    uint64_t cpu_ns;

    for (struct process *p; (p = processes_next(processes, &cursor));) {
        if (p->ended_ns || !processes_wants(processes, p) || !read_clock(p, &cpu_ns))
            continue;
        if (!VEC_EXTEND_ZERO(&c->by_slot, p->slot + 1))
            return error_no_memory();
        struct cpu_clock *clock = &c->by_slot.data[p->slot];
        if (clock->life != p->life)
            c->total_ns += first_ns(c, p, cpu_ns, time_ns);
        else if (cpu_ns > clock->cpu_ns)
            c->total_ns += cpu_ns - clock->cpu_ns;
        *clock = (struct cpu_clock){.life = p->life, .cpu_ns = cpu_ns};
    }
    c->look_ns = time_ns;
    return NULL;
}
