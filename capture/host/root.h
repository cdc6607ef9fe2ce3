/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files as a process sees them. Its root, reached through /proc, may be a container's, and what lies in there is
 * its users' to arrange: links are followed inside that root only.
 */
#ifndef CAPTURE_HOST_ROOT_H
#define CAPTURE_HOST_ROOT_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * A regular file for reading, or -1 and errno. `pid` 0: this program's own root. `follow` false: the path's last
 * part must not be a link.
 */
int root_open(pid_t pid, const char *path, bool follow);

#endif
