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
 * Opens the folder in which `path` is (O_PATH), and tells the name in there, a part of `path` or ".". What is done there is done
 * by the two: the path may lead elsewhere the next moment.
 *
 * ERROR_PERMISSION if it leads through a symbolic link that another user may have put there: the link is in another user's folder, or
 * in one that others may write to, unless that is sticky, as /tmp is, and the link is ours. Ours is what belongs to root, our
 * effective user or the one who called sudo.
 */
struct error *output_place_folder(const char *path, int *folder, const char **name);
/*
 * Tells what lies there; `path` is for messages. What belongs to our effective user or to the one who called sudo is ours.
 * ERROR_PERMISSION for what must not be written to: a symbolic link, a file with several names, a file of another user;
 * ERROR_IO for a folder or a socket, or if it cannot be looked at. `st` is set unless nothing is there.
 */
struct error *output_place_look(const char *path, int folder, const char *name, struct stat *st, enum output_place *out);
/* The same about what is known to lie there: `st` is from lstat(). Sets `out` unless it is an error. */
struct error *output_place_judge(const char *path, const struct stat *st, enum output_place *out);
/*
 * Opens for writing what output_place_look() has found there (OUTPUT_REGULAR or OUTPUT_STREAM; `st` is what it stored),
 * and leaves its contents. Fails if it is something else by now. A pipe must have a reader (else os_errno is ENXIO).
 */
struct error *output_place_open(const char *path, int folder, const char *name, const struct stat *st, int *fd);
/*
 * Creates a file of mode 0600 for reading and writing, NAME.XXXXXX, which the caller renames or removes, and frees *temporary.
 * -1: errno says why not.
 */
int output_place_create_beside(int folder, const char *name, int flags, char **temporary);
/*
 * The user and group to whom new outputs are given: the user who called sudo. Else our own user; returns false then.
 */
bool output_owner(uid_t *uid, gid_t *gid);
/* The descriptor that `path` stands for: /dev/stdout, /dev/stderr, /dev/fd/N or /proc/self/fd/N; -1: it is no such name. */
int output_descriptor(const char *path);

#endif
