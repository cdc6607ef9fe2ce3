/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files below the root of a process, through /proc/PID/root. The root may be a container's, whose users can place
 * anything there, so links are followed only inside that root, and only regular files are opened
 * (formats/base/open_regular.h). May block for ever, as explained there.
 */
#ifndef CAPTURE_HOST_ROOT_H
#define CAPTURE_HOST_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What tells the roots of processes apart: where two are equal, a path is the same file in both. */
struct root_identity {
    uint64_t mount_namespace, device, inode;
};
/* Reads that of process `pid`, or pycap's own with getpid(). False: the process has ended, or may not be asked. */
bool root_identify(pid_t pid, struct root_identity *out);
static inline bool root_is(const struct root_identity *a, const struct root_identity *b)
{
    return a->mount_namespace == b->mount_namespace && a->device == b->device && a->inode == b->inode;
}

/* An O_PATH descriptor of the root of process `pid`, 0: of pycap's own. -1: errno says why. */
int root_folder(pid_t pid);
/* Opens a regular file for reading. Returns -1 and sets errno when that fails. */
int root_open(pid_t pid, const char *path);
/* The same, but only a file that every user could open: pycap may have rights that the process does not have. */
int root_open_public(pid_t pid, const char *path);
/* As root_open(), without opening it: an O_PATH descriptor, for open_regular_reopen(). */
int root_find(pid_t pid, const char *path);

#endif
