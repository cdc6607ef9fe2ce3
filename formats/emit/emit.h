/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output formats. One file per format exports a `const struct emitter`; emitters.c
 * holds the table that --help and the tests walk.
 *
 * The symbolizer hands over frames and stacks once each, by number, and then
 * samples that refer to them. Stacks are trees: a stack is its parent (callers)
 * and one frame more. An emitter never sees the trace.
 */
#ifndef FORMATS_EMIT_EMIT_H
#define FORMATS_EMIT_EMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"

enum emit_frame_kind {
    EMIT_PYTHON,
    EMIT_NATIVE,
    EMIT_KERNEL,
    EMIT_MARK, /* "[torn]", "[truncated]": says that frames are missing here */
};

/* A frame as a reader of the profile knows it. Strings live as long as the model; never NULL, "" when unknown. */
struct emit_frame {
    enum emit_frame_kind kind;
    const char *function;  /* Python: qualified name; native: demangled name, or "" when unknown; kernel: symbol */
    const char *file;      /* source file as recorded */
    const char *module;    /* path of the binary; kernel: "[kernel.kallsyms]" or "[module]"; Python: the interpreter's */
    uint32_t line, column; /* 1-based; 0 unknown */
    uint64_t address;      /* native, kernel: the address (or file offset) sampled; Python: 0 */
    uint64_t symbol_offset; /* bytes from the symbol's start */
    bool inlined;          /* inlined into the frame that follows outwards */
    uint32_t function_line; /* where the function starts, shown by by_function; 0 unknown */
};

struct emit_stack {
    uint32_t parent; /* EMIT_NO_STACK for the outermost frame */
    uint32_t frame;
    uint32_t depth;  /* 1 for the outermost frame */
};
#define EMIT_NO_STACK UINT32_MAX /* also: a sample with no frames at all */

struct emit_process {
    uint32_t pid;
    const char *comm;
};
struct emit_thread {
    uint32_t process; /* index */
    uint32_t tid;
    const char *name; /* Python's name if known, else the kernel's */
};
struct emit_event {
    const char *name; /* cpu-clock */
    const char *unit; /* ns … */
    bool is_time;     /* a sample's value is nanoseconds */
};

/* What has been defined so far. Grows while samples come; numbers stay valid. */
struct emit_model {
    const struct emit_frame *frames;
    uint32_t frame_count;
    const struct emit_stack *stacks;
    uint32_t stack_count;
    const struct emit_process *processes;
    uint32_t process_count;
    const struct emit_thread *threads;
    uint32_t thread_count;
    const struct emit_event *events;
    uint32_t event_count;
};

struct emit_sample {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t value;   /* counts of the event (ns for clocks) */
    uint32_t thread, event, cpu;
    uint32_t stack;
};

/* Losses and gaps, for `summary` and for remarks. */
struct emit_note {
    const char *key, *value;
};

struct emit_options {
    bool threads;       /* folded: keep threads apart */
    bool no_lines;      /* leave line numbers out of names */
    bool by_function;   /* merge lines of one function */
    bool full_paths;    /* file names in full, not as short as tells them apart */
    bool columns;       /* name:line:column */
    const char *name;   /* of the profile: the input's file name, without a folder */
    const char *exporter; /* "pysym 0.1.0" */
    uint32_t top_count; /* rows of `top`; 0: all */
    bool weights_differ; /* samples to come do not all weigh the same, as far as that is known beforehand */
};

struct emitter {
    const char *name;        /* of --format */
    const char *description; /* one line for --help */
    const char *extension;   /* ".folded" */
    bool time_order;         /* wants each thread's samples in order of time */
    bool wants_weights;      /* cannot do without options.weights_differ */
    /* `out` is checked and closed by the caller. State is the emitter's own. */
    struct error *(*begin)(const struct emit_model *model, const struct emit_options *options, FILE *out, void **state);
    struct error *(*sample)(void *state, const struct emit_sample *sample);
    /* Everything that still has to be written. */
    struct error *(*end)(void *state);
    /* After the end: what a reader has to know of the output, for standard error; NULL: nothing. May be NULL itself. */
    const char *(*remark)(const void *state);
    void (*destroy)(void *state); /* accepts NULL; also after an error */
};

extern const struct emitter *const emitters[]; /* ends with NULL */
const struct emitter *emitter_find(const char *name);

#endif
