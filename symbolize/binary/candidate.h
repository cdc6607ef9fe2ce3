/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files whose paths nobody vouches for: a trace names its modules, and files name others (.gnu_debuglink,
 * .gnu_debugaltlink, symbolic links).
 *
 * Opening a file is an act: a watchdog starts, a FIFO's writer goes on, an automounter asks the network. So nothing is
 * opened before it was looked at, and only a regular file outside of /proc, /sys, /dev and automounts is: see
 * formats/base/open_regular.h.
 */
#ifndef SYMBOLIZE_BINARY_CANDIDATE_H
#define SYMBOLIZE_BINARY_CANDIDATE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Opens `path` for reading. Its first `named_bytes` bytes are a folder that the user named, or a folder of the system:
 * it is entered as it is, and only what follows is checked; 0: all of the path is checked, from "/" or from the working
 * directory. `stay_below`: no link and no ".." leads out of that folder, which is what "/" stands for.
 * -1: there is no such file, or it is not one that may be opened. The caller closes the result.
 */
int candidate_open(const char *path, size_t named_bytes, bool stay_below);

#endif
