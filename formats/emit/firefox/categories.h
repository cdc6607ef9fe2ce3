/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Categories of the Firefox Profiler: a stack has the category of its innermost frame, which gives the graph of a thread
 * its colours. Below a category are subcategories: of native code the built-in modules of the interpreter, of waits what
 * was waited for.
 */
#ifndef FORMATS_EMIT_FIREFOX_CATEGORIES_H
#define FORMATS_EMIT_FIREFOX_CATEGORIES_H

#include "formats/base/buf.h"
#include "formats/base/intern.h"
#include "formats/emit/emit.h"

/* The numbers of the file. */
enum firefox_category {
    FIREFOX_PYTHON,
    FIREFOX_NATIVE,
    FIREFOX_KERNEL,
    FIREFOX_WAITING,
    FIREFOX_OTHER, /* marks, such as "[torn]"; the Profiler's default category */
    FIREFOX_CATEGORIES,
};

/* {0} is an empty one; `limits` of the tables may be set. */
struct firefox_categories {
    struct intern below[FIREFOX_CATEGORIES]; /* names of subcategories; the file numbers them from 1: 0 is the category itself */
};

void firefox_categories_deinit(struct firefox_categories *c);
/* The category of a frame; NULL: of a sample without frames. */
enum firefox_category firefox_category_of(const struct emit_frame *frame);
/* Finds or adds the subcategory of a frame. False: out of memory. */
bool firefox_subcategory_of(struct firefox_categories *c, const struct emit_frame *frame, uint32_t *subcategory);
/* Appends the list of categories, after the last frame. */
void firefox_categories_put(const struct firefox_categories *c, struct buf *out);

#endif
