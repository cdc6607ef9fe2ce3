/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel frames of a sample are there only because the sampler was called, and are left out of its stack. */
#ifndef CAPTURE_TRACE_KERNEL_CUT_H
#define CAPTURE_TRACE_KERNEL_CUT_H

#include "capture/trace/trace_parts.h"

/*
 * Stores in `*count` how many of the innermost kernel frames of a thread that leaves its CPU are the switch itself: the
 * function __schedule, and what it calls. 0 if symbols cannot be read. `addresses` are innermost first.
 */
struct error *kernel_cut_switch(struct trace_builder *b, const uint64_t *addresses, uint32_t address_count, uint64_t time_ns,
                                uint32_t *count);
/*
 * The same of a thread at a tracepoint: the functions by which a tracepoint calls programs, and at the begin and the end of
 * a system call also those that enter and leave the kernel, as there is nothing else.
 */
struct error *kernel_cut_tracepoint(struct trace_builder *b, const uint64_t *addresses, uint32_t address_count, uint64_t time_ns,
                                    uint32_t *count);

#endif
