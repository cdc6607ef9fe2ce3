/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that output goes to: whole or not at all.
 *
 * A regular file is written beside its place under another name, and renamed when it is
 * whole. Standard output, pipes and devices are written as they are. What may be replaced
 * or written to at all is decided by output_place.h.
 */
#ifndef FORMATS_BASE_OUTPUT_H
#define FORMATS_BASE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "formats/base/err.h"

struct output {
    FILE *file;
    const char *name; /* for messages: borrowed, or "standard output" */
    bool regular;     /* not a pipe, a device or a descriptor that was open */
    char *place;      /* its name in its folder; NULL: a descriptor that was open */
    int folder;       /* where there is a place (O_PATH) */
    char *temporary;  /* the name that is written until then; NULL: written in place */
};

/* `path` NULL: standard output. `path` is borrowed until output_deinit(). Nothing to deinit after an error. */
struct error *output_open(const char *path, struct output *out);
/* Flushes, closes and renames the file to its final path. Only output_deinit() may follow. */
struct error *output_finish(struct output *out);
/* Without output_finish() before it, what was written to a regular file is removed. {0} has nothing to deinit. */
void output_deinit(struct output *out);

#endif
