/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that all threads of the Firefox Profiler's file share: binaries, functions, frames and stacks. Only what
 * samples use is in them.
 */
#ifndef FORMATS_EMIT_FIREFOX_STACKS_H
#define FORMATS_EMIT_FIREFOX_STACKS_H

#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/firefox/categories.h"
#include "formats/emit/firefox/strings.h"
#include "formats/emit/names.h"

/* A row of the table of frames. */
struct firefox_frame {
    uint32_t model_frame; /* frame_count of the model: that of samples without frames */
    uint32_t function, symbol, subcategory; /* symbol: of native code; may be FIREFOX_NONE */
    uint32_t inline_depth;
    int64_t address; /* in its binary; -1: none */
};

/* A row of the table of functions, which is told apart by all of it. */
struct firefox_function {
    uint32_t name, source, line, library; /* source, library: may be FIREFOX_NONE; line: 0 unknown */
    uint32_t is_python;
};

/* A row of the table of native symbols, likewise. */
struct firefox_symbol {
    uint64_t address;
    uint32_t library, name;
};

/* A row of the table of stacks. */
struct firefox_stack {
    uint32_t parent, frame; /* parent: FIREFOX_NONE at the root */
};

struct firefox_stacks {
    const struct emit_model *model; /* borrowed, like the options */
    const struct emit_options *options;
    struct firefox_strings strings;
    struct firefox_categories categories;
    struct names names;
    VEC(bool) used;                /* by the model's stack */
    bool has_empty;                /* samples without frames were seen */
    VEC(struct firefox_stack) stacks;
    VEC(uint32_t) stack_of;        /* by the model's stack; FIREFOX_NONE: unused */
    uint32_t empty_stack;          /* of samples without frames */
    VEC(struct firefox_frame) frames;
    struct map frame_of;           /* frame of the model << 32 | row of what it is inlined into, from 1 on -> row */
    struct intern functions, symbols; /* the rows above */
    struct intern sources;         /* the strings of files */
    VEC(uint32_t) libraries;       /* mappings of the model */
    VEC(uint32_t) library_names;   /* their strings, once they were written */
    VEC(uint32_t) library_of;      /* by mapping; FIREFOX_NONE: it has no row yet */
};

/* `model` and `options` must outlive `s`, which the caller deinits, also after an error. */
void firefox_stacks_init(struct firefox_stacks *s, const struct emit_model *model, const struct emit_options *options);
void firefox_stacks_deinit(struct firefox_stacks *s);
/* Notes that a sample has this stack of the model, or EMIT_NO_STACK. False: out of memory. */
bool firefox_stacks_use(struct firefox_stacks *s, uint32_t stack);
/* Fills the tables. Once, after the last sample. */
struct error *firefox_stacks_number(struct firefox_stacks *s);
/* The row of a stack that was used. */
static inline uint32_t firefox_stacks_find(const struct firefox_stacks *s, uint32_t stack)
{
    return stack == EMIT_NO_STACK ? s->empty_stack : s->stack_of.data[stack];
}

#endif
