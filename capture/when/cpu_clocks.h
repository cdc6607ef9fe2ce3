/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU time of the recorded processes, by the kernel's clock of each, which anybody may read. Threads that have ended count
 * in it. What a process ran since the last look and then ended is missing.
 */
#ifndef CAPTURE_WHEN_CPU_CLOCKS_H
#define CAPTURE_WHEN_CPU_CLOCKS_H

#include "capture/process/processes.h"
#include "formats/base/vec.h"

struct cpu_clocks {
    VEC(struct cpu_clock {
        uint64_t life;   /* of the process that had the slot at the last look; 0: none */
        uint64_t cpu_ns; /* its clock */
    }) by_slot;
    uint64_t look_ns;  /* when; 0: never yet */
    uint64_t total_ns; /* since the first look */
};

void cpu_clocks_deinit(struct cpu_clocks *c);
/* Reads the clocks. c->total_ns grows by what the processes that are sampled have run since the last look. */
struct error *cpu_clocks_look(struct cpu_clocks *c, struct processes *processes, uint64_t time_ns);

#endif
