/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of a page, their frames, and the texts of these. A stack is its parent and one frame more; a parent's number
 * is smaller, so whoever reads them in order knows it already.
 */
#ifndef FORMATS_EMIT_HTML_STACKS_H
#define FORMATS_EMIT_HTML_STACKS_H

#include "formats/base/intern.h"
#include "formats/emit/emit.h"
#include "formats/emit/html/numbers.h"

struct html_stacks {
    const struct emit_model *model; /* borrowed, like the options */
    const struct emit_options *options;
    struct html_numbers stacks, frames;
    struct intern texts;   /* text 0 is "" */
    VEC(uint32_t) outwards; /* scratch */
};

void html_stacks_init(struct html_stacks *s, const struct emit_model *model, const struct emit_options *options);
void html_stacks_deinit(struct html_stacks *s);
/* Finds the number of a stack of the model; a new one gets a number, and all that it stands on. */
struct error *html_stacks_find(struct html_stacks *s, uint32_t stack, uint32_t *number);
/* Writes the elements "strings", "frames" and "stacks", once, after the last sample. */
struct error *html_stacks_write(struct html_stacks *s, FILE *out);

#endif
