/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files below the root of a process, through /proc/PID/root. The root may be a container's, whose users can place
 * anything there, so links are followed only inside that root, and only regular files are opened
 * (formats/base/open_regular.h). May block for ever, as explained there.
 */
#ifndef CAPTURE_HOST_ROOT_H
#define CAPTURE_HOST_ROOT_H

#include <sys/types.h>

/* An O_PATH descriptor of the root of process `pid`, 0: of pycap's own. -1: errno says why. */
int root_folder(pid_t pid);
/* Opens a regular file for reading. Returns -1 and sets errno when that fails. */
int root_open(pid_t pid, const char *path);
/* The same, but only a file that every user could open: pycap may have rights that the process does not have. */
int root_open_public(pid_t pid, const char *path);
/* As root_open(), without opening it: an O_PATH descriptor, for open_regular_reopen(). */
int root_find(pid_t pid, const char *path);

#endif
