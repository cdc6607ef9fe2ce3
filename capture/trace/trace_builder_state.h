/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the trace builder share. trace_builder.c writes samples and what they refer
 * to, stacks.c finds the ids of their stacks.
 */
#ifndef CAPTURE_TRACE_TRACE_BUILDER_STATE_H
#define CAPTURE_TRACE_TRACE_BUILDER_STATE_H

#include "bpf/native_unwind.h"
#include "capture/process/python_names.h"
#include "capture/trace/trace_builder.h"

/* A Python stack as it is compared with others: innermost frame first. */
struct python_entry {
    uint64_t address; /* with WIRE_GENERATOR and WIRE_UNREAD; WIRE_RUN: outermost frame of its run */
    uint32_t fingerprint;
    int32_t offset;
};

/* The most CPUs that Linux knows on x86-64. */
#define CPUS_MAX 8192

struct trace_builder {
    struct trace_builder_options o;
    uint64_t epoch; /* counts up over all files; 0: none was begun */
    uint32_t event;
    bool begun;       /* the writer's first epoch has its head */
    struct map kernel_frames; /* address -> frame id, of this epoch */
    uint64_t losses[LOSS_LIMIT], written[LOSS_LIMIT];
    struct trace_builder_counts counts;
    uint64_t file_samples; /* in the file that is being written */
    struct python_names names;
    uint64_t unwanted[CPUS_MAX];
    /* scratch, one sample at a time */
    struct python_entry entries[WIRE_PYTHON_MAX];
    uint32_t frames[WIRE_PYTHON_MAX];
    uint64_t runs[WIRE_PYTHON_MAX * 2];
    uint64_t native[WIRE_NATIVE_MAX]; /* addresses of the native frames, with NATIVE_EXACT and NATIVE_GUESSED */
    uint64_t joined[WIRE_PYTHON_MAX * 2];
};

/* The module's id in this epoch; 0 for NULL. */
uint32_t trace_builder_define_module(struct trace_builder *b, struct module *m);

/* Code that the program made: what it calls a file in memory is none, unless it is an ELF file. */
static inline bool code_mapping_is_generated(const struct code_mapping *m)
{
    return code_mapping_is_anonymous(m) && (!m->module || m->module->kind == MODULE_OTHER);
}

/* ---- stacks.c: the ids of stacks in this epoch of the trace; frames that are new there are defined ---- */

/* Another mapping: the same addresses may be other functions now. */
void stacks_forget(struct process_stacks *s);
/* Splits the sampler's entries into frames (b->entries, innermost first) and runs (b->runs, outermost first). */
uint32_t stacks_split(struct trace_builder *b, const struct wire_python *wire, uint32_t wire_count, uint32_t *run_count);
/* The same where each frame is a run of its own, up to 3.10; false when nothing is known of the runs. */
bool stacks_split_objects(struct trace_builder *b, const struct wire_python *wire, uint32_t wire_count, uint32_t *frame_count);
/* Of the first `count` b->entries. */
struct error *stacks_python(struct trace_builder *b, struct process *p, uint32_t count, uint32_t *stack);
/* Frames as module and offset in its file. */
struct error *stacks_native(struct trace_builder *b, struct process *p, const struct native_frame *wire, uint32_t count,
                            uint32_t *stack);
struct error *stacks_kernel(struct trace_builder *b, const uint64_t *addresses, uint32_t count, uint64_t time_ns,
                            uint32_t *stack);
/* The join of b->runs with a stack whose native frames are known: indices from the outermost. */
uint32_t stacks_join(struct trace_builder *b, const struct late_unwind_result *native, uint32_t run_count);

#endif
