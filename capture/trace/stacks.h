/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ids of stacks in this epoch of the trace; frames that are new there are defined. Most samples have stacks that were
 * met before, and cost one look into a table.
 */
#ifndef CAPTURE_TRACE_STACKS_H
#define CAPTURE_TRACE_STACKS_H

#include "capture/trace/trace_parts.h"

/* The contents of a code object of the process, from a message of the sampler. */
struct error *stacks_learn_code(struct trace_builder *b, struct process_note *n, const struct wire_code *message,
                                uint32_t len_bytes);
/* Splits the sampler's entries into frames (b->entries, innermost first) and runs (b->runs, outermost first). */
uint32_t stacks_split(struct trace_builder *b, const struct wire_python *wire, uint32_t wire_count, uint32_t *run_count);
/* The same where each frame is a run of its own, up to 3.10; false when nothing is known of the runs. */
bool stacks_split_objects(struct trace_builder *b, const struct wire_python *wire, uint32_t wire_count, uint32_t *frame_count);
/* The id of the first `count` b->entries; 0 where `count` is 0, as for the other kinds. */
struct error *stacks_python(struct trace_builder *b, struct process_note *n, uint32_t count, uint32_t *stack);
/* Frames as module and offset in its file. */
struct error *stacks_native(struct trace_builder *b, struct process_note *n, const struct native_frame *wire, uint32_t count,
                            uint32_t *stack);
struct error *stacks_kernel(struct trace_builder *b, const uint64_t *addresses, uint32_t count, uint64_t time_ns,
                            uint32_t *stack);
/* The join of b->runs with a stack whose native frames are known: indices from the outermost. */
uint32_t stacks_join(struct trace_builder *b, const struct late_unwind_result *native, uint32_t run_count);

#endif
