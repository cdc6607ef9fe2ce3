/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds a snapshot (registers and a copy of the live user stack) with libunwind, over the
 * binaries found for the process's mappings. libunwind guesses by frame pointer where call
 * frame information is missing; this stops before such a step and says why.
 */
#ifndef SYMBOLIZE_UNWIND_UNWIND_H
#define SYMBOLIZE_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/elf/machine.h"

/* A file whose bytes serve as memory: segments and call frame information. Opened once per module. */
struct unwind_module;
/* `path` is the binary; `debug` (may be NULL) may hold .debug_frame. NULL path: *out has no information at all. */
struct error *unwind_module_open(const char *path, const char *debug, struct unwind_module **out);
/* The same from what was found for a module. */
struct binary_files;
struct error *unwind_module_open_files(const struct binary_files *files, struct unwind_module **out);
/* The vdso's image; copied. */
struct error *unwind_module_open_memory(const void *image, uint64_t len_bytes, struct unwind_module **out);
void unwind_module_close(struct unwind_module *m);

/* Executable mappings of one process at one time, sorted by address, not overlapping. */
struct unwind_mapping {
    uint64_t address, length, file_offset;
    struct unwind_module *module; /* NULL: none known */
    uint32_t module_id;           /* the caller's, handed back in frames */
};

struct unwinder;
/* For stacks of that machine; ERROR_UNSUPPORTED where this program has no libunwind for it. */
struct error *unwinder_create(const struct machine *machine, struct unwinder **out);
void unwinder_destroy(struct unwinder *u);
/*
 * The mappings that follow samples unwind in; must stay alive and unchanged until the next call. `generation` names
 * them: as long as it is the same, cached unwind information is kept.
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
    /* ip is where a call returns to (not the innermost frame, nor a signal trampoline, nor what a signal interrupted) */
    bool return_address;
};
/*
 * Innermost frame first. `registers` are the machine's, as many as it has, by DWARF number.
 * Returns the count of frames (at most max); *end is LOSS_complete when the thread's start was reached, else the
 * loss reason (formats/trace/losses.def).
 */
uint32_t unwinder_run(struct unwinder *u, const uint64_t *registers, const uint8_t *stack, uint64_t stack_address,
                      uint64_t stack_len, struct unwind_frame *frames, uint32_t max, uint32_t *end);

#endif
