/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes old files (--keep): only the newest stay, counting the files of earlier runs.
 */
#ifndef CAPTURE_OUTPUT_FILES_KEPT_H
#define CAPTURE_OUTPUT_FILES_KEPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

struct files_options {
    const char *pattern;     /* "-": standard output */
    const char *hostname;
    bool rotates;            /* more files may follow */
    uint32_t keep;           /* how many finished files to keep; 0: all */
    const gid_t *group;      /* may read the files; NULL: their owner alone */
    /* Asked now and then while a pipe has no reader: whether to wait no longer. NULL: to wait for ever. */
    bool (*given_up)(void *ctx);
    void *given_up_ctx;
};

struct files {
    struct files_options options;
    int fd;                  /* -1: no file is open */
    char *path;              /* of the open file */
    uint64_t named_ns;       /* the time in its name, or in the previous file's name; 0: no file was named yet */
    VEC(char *) written;     /* files that are complete, oldest first */
    size_t adopted_count;    /* how many of these, at the front, earlier runs have written */
};

/*
 * Adds the files of earlier runs to `written`, and removes those that are not to be kept. Call before the first file is
 * opened. Does nothing when files_options.keep is 0. A file counts if it is in the pattern's folder, has a name made
 * from the pattern (with this host's name, and any time and pid), begins as traces do, is a regular file and no link,
 * and belongs to the user to whom new files are given. If another capture is writing one of these files, none of them
 * is added: it uses the same pattern, and the files may be its own.
 */
struct error *files_adopt(struct files *f);
/* Removes the files that are not to be kept. A file of an earlier run is checked again before. */
struct error *files_trim(struct files *f);

#endif
