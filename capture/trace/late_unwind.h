/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Native frames of the samples that the sampler could not unwind itself: those that
 * fell on a module whose table had not been built, or on a mapping that it had not
 * been told of (a process's first milliseconds, a library just loaded). Such a sample
 * brings a copy of its stack; the sampler's own unwinder (bpf/native_unwind.h) runs
 * over it here, with the mappings as they were at that time, and with tables that are
 * built on the spot. The copy goes no further.
 */
#ifndef CAPTURE_TRACE_LATE_UNWIND_H
#define CAPTURE_TRACE_LATE_UNWIND_H

#include <stdint.h>

#include "bpf/native_unwind.h"
#include "capture/process/processes.h"
#include "capture/binary/tables.h"
#include "formats/base/err.h"

struct late_unwind;
/* `tables` is borrowed. */
struct error *late_unwind_create(struct tables *tables, struct late_unwind **out);
void late_unwind_destroy(struct late_unwind *u);

struct late_unwind_result {
    const struct native_frame *frames; /* valid until the next call */
    uint32_t count;
    uint32_t end; /* loss reason; LOSS_complete */
    uint64_t last_cfa;
};
/* `stack` are the sample's stack_len_bytes bytes from its stack pointer on. */
struct error *late_unwind_run(struct late_unwind *u, const struct process *p, const struct wire_sample *sample,
                           const uint8_t *stack, struct late_unwind_result *out);

#endif
