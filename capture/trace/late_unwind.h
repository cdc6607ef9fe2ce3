/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds the native frames of samples that the sampler could not unwind itself: those
 * that fell on a module whose table was not built yet, or on a mapping that the sampler
 * did not know yet (a process's first milliseconds, a library just loaded). Such a sample
 * carries a copy of its stack. The same unwinder that the sampler uses
 * (bpf/native_unwind.h) runs over the copy here, with the mappings as they were at that
 * time and with tables built on demand. The copy is not written to the trace.
 */
#ifndef CAPTURE_TRACE_LATE_UNWIND_H
#define CAPTURE_TRACE_LATE_UNWIND_H

#include <stdint.h>

#include "bpf/native_unwind.h"
#include "capture/process/processes.h"
#include "capture/binary/tables.h"
#include "formats/base/err.h"

struct late_unwind;
/* `tables` is borrowed; NULL: frame pointers are followed, and nothing else. */
struct error *late_unwind_create(struct tables *tables, struct late_unwind **out);
void late_unwind_destroy(struct late_unwind *u);

struct late_unwind_result {
    const struct native_frame *frames; /* valid until the next call */
    uint32_t count;
    uint32_t end; /* loss reason; LOSS_complete */
    uint64_t last_cfa;
};
/*
 * Unwinds one sample. `stack` holds its sample->stack_len_bytes bytes of the stack, which may have holes, and may be none
 * at all. A stack that ends early is no error: out->end names the reason.
 */
struct error *late_unwind_run(struct late_unwind *u, const struct process *p, const struct wire_sample *sample,
                           const uint8_t *stack, struct late_unwind_result *out);
/*
 * Completes what the sampler has unwound of a sample, which `out` holds. Cuts off what it found by rows of a library that was
 * not there any more, and unwinds anew what it could not, if the sample brings its stack. `u` NULL: only the former.
 */
struct error *late_unwind_complete(struct late_unwind *u, const struct process *p, const struct wire_sample *sample,
                                   const uint8_t *stack, struct late_unwind_result *out);

#endif
