/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds a snapshot (registers and a copy of the live user stack) with libunwind, over the
 * binaries found for the process's mappings. libunwind guesses by frame pointer where call
 * frame information is missing; this file stops before such a step and says why.
 */
#ifndef SYMBOLIZE_UNWIND_UNWIND_H
#define SYMBOLIZE_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/elf/machine.h"
#include "symbolize/unwind/unwind_module.h"

struct unwinder;
/* For stacks of that machine; fails with ERROR_UNSUPPORTED if this program has no libunwind for it. */
struct error *unwinder_create(const struct machine *machine, struct unwinder **out);
void unwinder_destroy(struct unwinder *u);
/*
 * Sets the mappings for the following calls of unwinder_run(). Borrowed: must not change until the next call of this
 * function. `generation` identifies them: while it stays the same, cached unwind information is kept.
 */
void unwinder_set_mappings(struct unwinder *u, const struct unwind_mapping *mappings, uint32_t count, uint64_t generation);

struct unwind_frame {
    uint64_t ip;          /* absolute */
    /*
     * The frame is [sp, cfa); cfa is UINT64_MAX when the last step failed. A signal trampoline's cfa is the interrupted
     * stack pointer, which is anywhere when the handler ran on a stack of its own.
     */
    uint64_t sp, cfa;
    uint32_t mapping;     /* index, or UINT32_MAX */
    /*
     * ip is a return address (not so in the innermost frame, a signal trampoline, or a frame that a signal interrupted)
     */
    bool return_address;
};
/*
 * Unwinds a stack, innermost frame first. `registers` has all of the machine's, by DWARF number.
 * Returns the count of frames (at most max); *end is LOSS_complete when the thread's start was reached, else the
 * loss reason (formats/trace/losses.def).
 */
uint32_t unwinder_run(struct unwinder *u, const uint64_t *registers, const uint8_t *stack, uint64_t stack_address,
                      uint64_t stack_len, struct unwind_frame *frames, uint32_t max, uint32_t *end);

#endif
