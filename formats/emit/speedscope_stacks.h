/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames and stacks as speedscope's file shows them: frames are numbered, and stacks that look alike have one number,
 * though the model tells them apart (by a line that is not shown, say). All profiles of the file share them.
 */
#ifndef FORMATS_EMIT_SPEEDSCOPE_STACKS_H
#define FORMATS_EMIT_SPEEDSCOPE_STACKS_H

#include "formats/base/buf.h"
#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

/* Number 0 is the empty stack. A parent's number is lower than its children's. */
struct speedscope_stack {
    uint32_t parent, frame, depth;
};

struct speedscope_stacks {
    const struct emit_model *model; /* borrowed, like the options */
    const struct emit_options *options;
    VEC(bool) used;       /* by the model's stack */
    bool has_empty;       /* samples without frames were seen */
    struct intern frames; /* JSON objects, by number in the file */
    uint32_t *frame_of;   /* by the model's frame; INTERN_NONE: unused. One more entry, for samples without frames */
    VEC(struct speedscope_stack) shown;
    uint32_t *shown_of;   /* by the model's stack; 0: unused */
    uint32_t shown_empty; /* of samples without frames */
    struct map children;  /* parent << 32 | frame -> number */
};

void speedscope_stacks_init(struct speedscope_stacks *s, const struct emit_model *model,
                            const struct emit_options *options);
void speedscope_stacks_deinit(struct speedscope_stacks *s);
/* Notes that a sample has this stack of the model, or EMIT_NO_STACK. False: out of memory. */
bool speedscope_stacks_use(struct speedscope_stacks *s, uint32_t stack);
/* Numbers all frames and stacks that were used. Once, after the last sample. */
struct error *speedscope_stacks_number(struct speedscope_stacks *s);
/* The number of a stack that was used. */
static inline uint32_t speedscope_stacks_find(const struct speedscope_stacks *s, uint32_t stack)
{
    return stack == EMIT_NO_STACK ? s->shown_empty : s->shown_of[stack];
}
/* Appends a stack as the list of its frames' numbers: "[0,2,3]". */
void speedscope_stacks_put(const struct speedscope_stacks *s, uint32_t shown, struct buf *out);

#endif
