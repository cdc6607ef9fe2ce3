/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the files that were written stay: the newest of them, those of runs before this
 * one counted in.
 */
#ifndef CAPTURE_SESSION_FILES_KEPT_H
#define CAPTURE_SESSION_FILES_KEPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"

struct files_options {
    const char *pattern;     /* "-": standard output */
    const char *hostname;
    bool rotates;            /* more files may follow */
    uint32_t keep;           /* of the files written, so many; 0: all */
};

struct files {
    struct files_options options;
    int fd;                  /* -1: no file is open */
    char *path;              /* of the open file */
    uint64_t named_ns;       /* the time in its name, or in that of the last one; 0: no file was named yet */
    VEC(char *) written;     /* files that were ended, oldest first */
    size_t adopted_count;    /* of these, the first: written by runs before this one */
};

/*
 * Takes what runs before this one left into `written`, and removes what is not to be kept. For files_options.keep, before
 * the first file is opened; otherwise it does nothing. Taken are traces, in the pattern's folder, whose names the
 * pattern gives, with this host's name and any time and pid; regular files (no links) of the user to whom new ones are
 * given. None are if one of them is being written: another capture has the same pattern, and the files may be its own.
 */
struct error *files_adopt(struct files *f);
/* Removes what is not to be kept; adopted files only if they still are what they were. */
struct error *files_trim(struct files *f);
/* The user to whom files are given, and the group if there is one: who called sudo, else our own user (false). */
bool files_owner(uid_t *uid, gid_t *gid);

#endif
