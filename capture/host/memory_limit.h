/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory the cgroup of this process allows: what is loaded into the kernel counts for it, too. */
#ifndef CAPTURE_HOST_MEMORY_LIMIT_H
#define CAPTURE_HOST_MEMORY_LIMIT_H

#include <stddef.h>
#include <stdint.h>

/* The lowest limit of pycap's own cgroup and those above it, in bytes; UINT64_MAX: none is known. */
uint64_t memory_limit(void);
/* What this process may have more, about: what the host has available, or the limit if that is lower; UINT64_MAX: not known. */
uint64_t memory_available(void);
/*
 * The same as memory_limit(), by the text of a mountinfo file and of a process's cgroup file, both hierarchies' (cgroup2, and "memory" of
 * cgroup v1), with `root` put before all paths. For tests.
 */
uint64_t memory_limit_by(const char *mountinfo, const char *cgroups, const char *root);

#endif
