/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who descends from whom: the processes that run already below one that is to be recorded. Found by the parent's pid that
 * each process's stat file tells, which is one small read for each process of the host. A process whose parent has ended
 * belongs to its reaper (often init), and is not found.
 */
#ifndef CAPTURE_HOST_PROCFS_DESCENT_H
#define CAPTURE_HOST_PROCFS_DESCENT_H

#include <stddef.h>
#include <stdint.h>

#include "capture/host/procfs.h"

struct procfs_parentage {
    uint32_t pid, parent;
};
/*
 * Appends to `out` those of `list` that descend from one of the roots, at any depth; a parent stands before its children.
 * Roots are not appended. Sorts `list`. The numbers may be in any order, and need not make sense: they were read one after
 * the other, while pids were reused.
 */
struct error *procfs_descend(struct procfs_parentage *list, size_t count, const uint32_t *roots, size_t root_count,
                             struct procfs_pids *out);
/*
 * The same for all processes that /proc shows, but this one and its own: a program that records itself has it as a child. The caller
 * frees out->list.
 */
struct error *procfs_descendants(const uint32_t *roots, size_t root_count, struct procfs_pids *out);

#endif
