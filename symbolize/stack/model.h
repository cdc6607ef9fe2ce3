/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a struct emit_model: interns texts, frames, stacks, events, processes and
 * threads by their contents, so that equal things always have the same number.
 *
 * Functions that return a number return MODEL_NONE when memory ran out.
 */
#ifndef SYMBOLIZE_STACK_MODEL_H
#define SYMBOLIZE_STACK_MODEL_H

#include "formats/base/arena.h"
#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "symbolize/trace/epoch.h"

#define MODEL_NONE UINT32_MAX

struct model {
    struct emit_model view;
    struct limits *limits; /* borrowed; NULL: none */
    bool wall; /* times on the CPU and off it are one event, "wall" */
    struct intern texts, frame_keys, event_keys, process_keys, first_program_keys, thread_keys, mapping_keys, label_keys, code_keys;
    struct map stack_keys, exact_keys;
    struct arena arena;
    VEC(struct emit_frame) frames;
    VEC(struct emit_code) codes;
    VEC(struct emit_stack) stacks;
    VEC(struct emit_event) events;
    VEC(struct emit_total) totals; /* by event; who counts samples adds to them */
    VEC(struct emit_process) processes;
    VEC(uint32_t) first_programs; /* by number in first_program_keys: of a process the first program that came */
    VEC(struct emit_thread) threads;
    VEC(struct emit_mapping) mappings;
    VEC(struct emit_label_set) label_sets;
    VEC(struct emit_exact_time) exact_times;
    VEC(struct emit_thread_state) thread_states;
    struct buf scratch;
};

/* A frame by numbers of texts; text 0 is "". */
struct model_frame {
    enum emit_frame_kind kind;
    uint32_t function, file, module, builtin, wait;
    uint32_t line, column, function_line;
    uint32_t function_end; /* of frames that differ in nothing else the first stays */
    uint32_t mapping;
    uint32_t code; /* of the model; EMIT_NO_CODE */
    uint64_t address, symbol_offset;
    bool inlined, return_address;
};

/* A binary by its path, a text. Bytes and segments are copied. */
struct model_mapping {
    uint32_t path;
    const uint8_t *build_id; /* GNU build ID, if any */
    uint32_t build_id_len;
    const struct emit_segment *segments;
    uint32_t segment_count;
};

/* A label by numbers of texts. */
struct model_label {
    uint32_t key, value;
};

/* False when memory ran out. The struct must be {0} before. `limits` is borrowed; NULL: none. */
bool model_init(struct model *m, struct limits *limits);
void model_deinit(struct model *m);
/* The number of a text, which ends at `len_bytes` or at the first NUL. */
uint32_t model_text(struct model *m, const char *text, size_t len_bytes);
const char *model_text_get(const struct model *m, uint32_t text);
uint32_t model_frame(struct model *m, const struct model_frame *frame);
/* The parts that a frame was made of. */
struct model_frame model_frame_get(const struct model *m, uint32_t frame);
uint32_t model_mapping(struct model *m, const struct model_mapping *mapping);
/* Says that names of a binary come from elsewhere than its path. */
void model_mapping_is_elsewhere(struct model *m, uint32_t mapping);
uint32_t model_code(struct model *m, const struct emit_code *code);
/* Set 0 has no labels. */
uint32_t model_label_set(struct model *m, const struct model_label *labels, uint32_t count);
/* `parent` is EMIT_NO_STACK for an outermost frame. */
uint32_t model_stack(struct model *m, uint32_t parent, uint32_t frame);
uint32_t model_event(struct model *m, uint32_t name, uint32_t unit, enum event_value kind);
/* The same for an event of the epoch. Page faults become bytes if the page size is known; with `wall` times become wall time. */
uint32_t model_event_of(struct model *m, const struct epoch *e, uint32_t event);
/* What is shown of a process, by numbers of texts; 0: unknown, or no title. */
struct model_process {
    uint32_t comm, name, title, container, cgroup;
    uint32_t parent_pid, python_version;
    bool free_threaded, ended;
};
/* Adds a process, or replaces what is shown of it. */
uint32_t model_process(struct model *m, const struct process_identity *key, const struct model_process *shown);
/* Says that another CPython ran in a process. */
void model_other_python(struct model *m, uint32_t process, uint32_t version);
uint32_t model_thread(struct model *m, uint32_t process, uint32_t tid, uint32_t name);
void model_name_thread(struct model *m, uint32_t thread, uint32_t name);
/* Adds to the exact time that a thread was on a CPU (kind 0), or waited: an enum trace_wait_kind. False: out of memory. */
bool model_exact_time(struct model *m, uint32_t thread, uint64_t kind, uint64_t ns, uint64_t count);
/* Adds what a thread did at the end. False: out of memory. */
bool model_thread_state(struct model *m, const struct emit_thread_state *state);

#endif
