/* SPDX-License-Identifier: Apache-2.0 */
/* How many processes, threads and mappings the sampler's tables have room for, by the size of the host. */
#ifndef CAPTURE_SAMPLER_MAP_SIZES_H
#define CAPTURE_SAMPLER_MAP_SIZES_H

#include <stdbool.h>
#include <stdint.h>

struct map_sizes {
    bool grow;          /* tables of processes and threads take memory for an entry when it is made, not for all at the start */
    uint32_t processes; /* that are sampled at once */
    uint32_t threads;   /* whose waits are recorded */
    uint32_t mappings;  /* executable ones, of all processes that do not have the same ones */
    uint32_t recent;    /* threads, or processes, of which something is remembered, as long as there is room */
    uint32_t senders;   /* likewise, processes that have just sent code objects */
};

/* What the host has now. */
struct map_sizes_host {
    uint32_t processes, threads; /* 0: not known */
    uint32_t cpus;               /* that are sampled */
};
/* `grow`: the kernel can (map_sizes_can_grow()). */
struct map_sizes map_sizes_of(bool grow, const struct map_sizes_host *host);
/* Whether the kernel lets tables grow that a perf event's program writes: since Linux 6.1. */
bool map_sizes_can_grow(uint32_t kernel_major, uint32_t kernel_minor);

#endif
