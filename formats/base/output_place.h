/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether an output may be written where its path leads.
 *
 * Whoever may create files in a folder can put something there before we come: a link to a file of ours, a file that he
 * keeps open, a pipe that he reads. The kernel prevents that only with fs.protected_* set, and only in sticky folders.
 * So no link is followed, and only what is ours is written to.
 */
#ifndef FORMATS_BASE_OUTPUT_PLACE_H
#define FORMATS_BASE_OUTPUT_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "formats/base/err.h"

enum output_place {
    OUTPUT_NOTHING, /* nothing is there */
    OUTPUT_REGULAR, /* a file of our user with one name */
    OUTPUT_STREAM,  /* a pipe or a device, of our user or of root */
};

/*
 * Tells what lies at `path`. What belongs to our effective user or to the one who called sudo is ours.
 * ERROR_PERMISSION for what must not be written to: a symbolic link, a file with several names, a file of another user,
 * and what output_place_check_way() refuses;
 * ERROR_IO for a folder or a socket, or if it cannot be looked at. `st` is set unless nothing is there.
 */
struct error *output_place_look(const char *path, struct stat *st, enum output_place *out);
/* The same about what is known to lie there: `st` is from lstat(). Sets `out` unless it is an error. */
struct error *output_place_judge(const char *path, const struct stat *st, enum output_place *out);
/*
 * ERROR_PERMISSION if a folder of the path is a symbolic link that somebody else has put into a folder that everybody may
 * write to, such as /tmp.
 */
struct error *output_place_check_way(const char *path);
/*
 * Opens for writing what output_place_look() has found there (OUTPUT_REGULAR or OUTPUT_STREAM; `st` is what it stored),
 * and leaves its contents. Fails if it is something else by now. A pipe must have a reader (else os_errno is ENXIO).
 */
struct error *output_place_open(const char *path, const struct stat *st, int *fd);
/*
 * The user and group to whom new outputs are given: the user who called sudo. Else our own user; returns false then.
 */
bool output_owner(uid_t *uid, gid_t *gid);
/* The descriptor that `path` stands for: /dev/stdout, /dev/stderr, /dev/fd/N or /proc/self/fd/N; -1: it is no such name. */
int output_descriptor(const char *path);

#endif
