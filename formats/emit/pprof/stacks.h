/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of the model as stacks of locations. A location is a place in the code; functions that the compiler inlined there
 * are lines of it, so several frames of the model can be one location.
 *
 * Stacks that differ in what a profile does not show, such as columns, become one.
 */
#ifndef FORMATS_EMIT_PPROF_STACKS_H
#define FORMATS_EMIT_PPROF_STACKS_H

#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/names.h"
#include "formats/emit/pprof/tables.h"

/* A location and its callers. */
struct pprof_node {
    uint32_t parent; /* PPROF_NONE: none */
    uint32_t location;
    uint32_t depth; /* 1 for the outermost */
};

struct pprof_stacks {
    const struct emit_model *model; /* borrowed, like the rest but the arrays */
    const struct emit_options *options;
    struct pprof_tables *tables;
    struct names names;
    VEC(struct pprof_node) nodes;
    VEC(uint32_t) node_of;     /* by stack of the model; PPROF_NONE: not asked for yet */
    struct map node_ids;       /* (parent + 1) << 32 | location -> node */
    VEC(uint32_t) todo;        /* scratch, like the rest */
    VEC(struct pprof_line) lines;
    struct buf text;
};

struct error *pprof_stacks_init(struct pprof_stacks *s, const struct emit_model *model,
                                const struct emit_options *options, struct pprof_tables *tables);
void pprof_stacks_deinit(struct pprof_stacks *s);
/* The location of the mark [truncated]; PPROF_NONE: out of memory, as below. */
uint32_t pprof_stacks_truncated(struct pprof_stacks *s);
/* The node of a stack, which may be EMIT_NO_STACK: that is a location of its own. PPROF_NONE: out of memory. */
uint32_t pprof_stacks_node(struct pprof_stacks *s, uint32_t stack);

#endif
