/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces a file by another, whole: the new one is written beside it and renamed, so that a reader, and who starts after a
 * crash, finds the old file or the new one. What may be replaced is decided by output_place.h; no pipes and devices.
 */
#ifndef FORMATS_BASE_REPLACEMENT_H
#define FORMATS_BASE_REPLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "formats/base/err.h"

struct replacement {
    int fd;           /* of the new file, open for reading and appending */
    const char *path; /* borrowed until replacement_deinit() */
    int folder;       /* of the file (O_PATH), where `name` is not NULL */
    const char *name; /* in the folder */
    char *temporary;  /* where the new file is; NULL: in its place */
};

/* Creates the new file, empty, with exactly this mode. Nothing to deinit after an error. */
struct error *replacement_create(const char *path, mode_t mode, struct replacement *out);
struct error *replacement_write(struct replacement *r, const void *data, size_t len_bytes);
/* Renames it. `durable`: its contents and its name are on disk when this returns, or it is an error. */
struct error *replacement_commit(struct replacement *r, bool durable);
/* Closes r->fd unless it is -1. A file that was not committed is removed. */
void replacement_deinit(struct replacement *r);

#endif
