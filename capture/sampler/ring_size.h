/* SPDX-License-Identifier: Apache-2.0 */
/* How large the ring is between the sampler and pycap where the user does not say it. */
#ifndef CAPTURE_SAMPLER_RING_SIZE_H
#define CAPTURE_SAMPLER_RING_SIZE_H

#include <stdint.h>

#include "capture/event/event.h"

/* By rate, CPUs, and the stack that each sample may copy: bytes, a power of two. */
uint32_t ring_size_bytes(const struct event_list *events, uint32_t cpu_count, uint32_t stack_bytes);

#endif
