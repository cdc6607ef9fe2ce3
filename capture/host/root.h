/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files below the root of a process, through /proc/PID/root. The root may be a container's, whose users can place
 * any links there, so links are followed only inside that root.
 */
#ifndef CAPTURE_HOST_ROOT_H
#define CAPTURE_HOST_ROOT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Opens a regular file for reading. Returns -1 and sets errno when that fails. `pid` 0: pycap's own root. Without
 * `follow` the last part of the path must not be a link.
 */
int root_open(pid_t pid, const char *path, bool follow);

#endif
