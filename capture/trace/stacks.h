/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the ids of a sample's stacks in this epoch of the trace, and writes the frames and stacks that are new there.
 * Most samples have a stack that was seen before; those cost one table lookup.
 */
#ifndef CAPTURE_TRACE_STACKS_H
#define CAPTURE_TRACE_STACKS_H

#include "capture/trace/trace_parts.h"

/*
 * The interpreter of a process that the message which is handled is of, and how far it is mapped from where it was linked. It is the
 * module's. NULL: the process has none.
 */
const struct py_image *stacks_interpreter(const struct trace_builder *b, const struct process *p, uint64_t *bias);
/* Remembers the contents of a code object of the process, as the sampler sent them. */
struct error *stacks_learn_code(struct trace_builder *b, struct process_note *n, const struct wire_code *message,
                                uint32_t len_bytes);
/*
 * Splits the sampler's entries into frames (b->entries, innermost first) and interpreter runs (b->runs, outermost
 * first). Returns the number of frames.
 */
uint32_t stacks_split(struct trace_builder *b, const struct wire_python *wire, uint32_t wire_count, uint32_t *run_count);
/*
 * The same for CPython up to 3.10, where each frame is an interpreter run of its own. False when the runs are unknown.
 */
bool stacks_split_objects(struct trace_builder *b, const struct wire_python *wire, uint32_t wire_count, uint32_t *frame_count);
/*
 * Whether the process makes more new stacks than its quota allows, and this sample has one of them: Python frames as
 * stacks_split() left them in b->entries, and native ones. Then only the innermost frames are to be written.
 */
bool stacks_are_over(struct trace_builder *b, struct process_note *n, uint32_t count, const struct native_frame *native,
                     uint32_t native_count, uint64_t time_ns);
/* Charges the process for what was written since the epoch had `bytes_before`. */
void stacks_charge(struct trace_builder *b, struct process_note *n, uint64_t bytes_before, uint64_t time_ns);
/* Stores in `*stack` the id of the Python stack in b->entries[0..count). For all three kinds: 0 when `count` is 0. */
struct error *stacks_python(struct trace_builder *b, struct process_note *n, uint32_t count, uint32_t *stack);
/* The same for native frames; they are written as module and file offset. */
struct error *stacks_native(struct trace_builder *b, struct process_note *n, const struct native_frame *wire, uint32_t count,
                            uint32_t *stack);
/*
 * The same for kernel frames, given by address; they are named from /proc/kallsyms. `time_ns` paces reading it again.
 */
struct error *stacks_kernel(struct trace_builder *b, const uint64_t *addresses, uint32_t count, uint64_t time_ns,
                            uint32_t *stack);
/*
 * Joins b->runs with native frames that were unwound late: finds the native frame that each run belongs to, counted
 * from the outermost. Returns the id of the JOIN record.
 */
uint32_t stacks_join(struct trace_builder *b, const struct late_unwind_result *native, uint32_t run_count);
/*
 * The same of a subinterpreter up to 3.9, whose activations leave no record: its frames are those of the innermost ones. Those
 * further out are of the interpreters that entered it, whose frames are not in the stack.
 */
uint32_t stacks_join_innermost(struct trace_builder *b, const struct process *p, const struct late_unwind_result *native,
                               uint32_t run_count);

#endif
