/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that output goes to: whole or not at all.
 *
 * A regular file is written beside its place under another name, and renamed when it is
 * whole. Standard output, pipes and devices are written as they are.
 */
#ifndef FORMATS_BASE_OUTPUT_H
#define FORMATS_BASE_OUTPUT_H

#include <stdio.h>

#include "formats/base/err.h"

struct output {
    FILE *file;
    const char *name; /* for messages: borrowed, or "standard output" */
    char *place;      /* where it is to be, links followed; NULL when written in place */
    char *temporary;
};

/* `path` NULL is standard output. */
struct error *output_open(const char *path, struct output *out);
/* An error met while writing, with the output's name if writing is what failed. */
struct error *output_blame(const struct output *out, struct error *err);
/* Flushes, closes and puts it in its place; then there is nothing left but output_deinit(). */
struct error *output_finish(struct output *out);
/* Without output_finish() before it, nothing is left behind. */
void output_deinit(struct output *out);

#endif
