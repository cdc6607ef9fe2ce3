/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a struct emit_model: interns texts, frames, stacks, events, processes and
 * threads by their contents, so that equal things have one number for good.
 *
 * Functions that give a number give MODEL_NONE when memory ran out.
 */
#ifndef SYMBOLIZE_STACK_MODEL_H
#define SYMBOLIZE_STACK_MODEL_H

#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

#define MODEL_NONE UINT32_MAX

struct model {
    struct emit_model view;
    struct intern texts, frame_keys, event_keys, process_keys, thread_keys;
    struct map stack_keys;
    VEC(struct emit_frame) frames;
    VEC(struct emit_stack) stacks;
    VEC(struct emit_event) events;
    VEC(struct emit_process) processes;
    VEC(struct emit_thread) threads;
    VEC(char) text; /* scratch */
};

/* A frame by numbers of texts; text 0 is "". */
struct model_frame {
    enum emit_frame_kind kind;
    uint32_t function, file, module;
    uint32_t line, column, function_line;
    uint64_t address, symbol_offset;
    bool inlined;
};

/* What tells address spaces apart across epochs, files and hosts. */
struct model_process_key {
    uint8_t boot_id[16];
    uint64_t start_boottime_ns, exec_generation;
    uint32_t tgid, file; /* file: of a host without boot ID, else 0 */
};

/* False when memory ran out. {0} before that. */
bool model_init(struct model *m);
void model_deinit(struct model *m);
/* Ends at a NUL. */
uint32_t model_text(struct model *m, const char *text, size_t len_bytes);
const char *model_text_get(const struct model *m, uint32_t text);
uint32_t model_frame(struct model *m, const struct model_frame *frame);
/* The parent EMIT_NO_STACK is the root. */
uint32_t model_stack(struct model *m, uint32_t parent, uint32_t frame);
uint32_t model_event(struct model *m, uint32_t name, uint32_t unit);
uint32_t model_process(struct model *m, const struct model_process_key *key, uint32_t comm);
uint32_t model_thread(struct model *m, uint32_t process, uint32_t tid, uint32_t name);

#endif
