/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sampler's map of processes, and beside it the count of what is known by tgid, by which most switches between threads
 * are seen to be nobody's (bpf/sampler_state.h).
 */
#ifndef CAPTURE_SAMPLER_PROCESS_MAP_H
#define CAPTURE_SAMPLER_PROCESS_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "formats/base/err.h"

struct process_map {
    int fd;             /* not owned */
    uint32_t *followed; /* WIRE_FOLLOWED counts, shared with the kernel; not owned */
    bool short_of_memory; /* the last process could not be added, though the kernel was asked for a while */
};

/*
 * Adds a process, or changes what is known of it. Where the map is full, or the kernel has no memory for the entry, the process
 * is not in the map afterwards, and `*full` is true: that is no error.
 */
struct error *process_map_set(struct process_map *map, uint32_t tgid, const struct wire_process *process, bool *full);
/* False: it is not there. */
bool process_map_get(const struct process_map *map, uint32_t tgid, struct wire_process *process);
void process_map_remove(const struct process_map *map, uint32_t tgid);
/* Removes those that are not wanted. */
void process_map_prune(const struct process_map *map, bool (*wanted)(void *ctx, uint32_t tgid), void *ctx);

#endif
