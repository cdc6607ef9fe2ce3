/* SPDX-License-Identifier: Apache-2.0 */
/* What tells the roots of processes apart. Where two are equal, a path is the same file in both. */
#ifndef CAPTURE_HOST_ROOT_IDENTITY_H
#define CAPTURE_HOST_ROOT_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct root_identity {
    uint64_t mount_namespace, device, inode;
};
/* Reads that of process `pid`, or pycap's own with getpid(). False: the process has ended, or may not be asked. */
bool root_identify(pid_t pid, struct root_identity *out);
static inline bool root_is(const struct root_identity *a, const struct root_identity *b)
{
    return a->mount_namespace == b->mount_namespace && a->device == b->device && a->inode == b->inode;
}

#endif
