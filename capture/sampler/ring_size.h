/* SPDX-License-Identifier: Apache-2.0 */
/* How many rings there are between the sampler and pycap, and how large they are. */
#ifndef CAPTURE_SAMPLER_RING_SIZE_H
#define CAPTURE_SAMPLER_RING_SIZE_H

#include <stdint.h>

#include "capture/event/event.h"

struct ring_sizes {
    uint32_t count, shift; /* CPU n has ring n >> shift, or the last one if there are fewer */
    uint32_t bytes;        /* of each ring, a power of two */
};
/*
 * Sets the rings for `cpu_count` CPUs with numbers below `cpu_end`. `all_bytes`, a power of two, is what all of them together
 * may take; 0: as much as the rate and the stack that each sample may copy want. `ring_cpus`, a power of two, is how many CPUs
 * are to share one; 0: as many as is good.
 */
struct ring_sizes ring_sizes_of(const struct event_list *events, uint32_t cpu_count, uint32_t cpu_end, uint32_t stack_bytes,
                                uint32_t all_bytes, uint32_t ring_cpus);

#endif
