/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the table of processes from /proc: when a capture begins, and where an event or a sample names one unknown. */
#ifndef CAPTURE_PROCESS_PROCESSES_PROC_H
#define CAPTURE_PROCESS_PROCESSES_PROC_H

#include "capture/host/procfs_maps.h"
#include "capture/process/process_table.h"

/* Reads all processes of the host. Selects those in `pids`; the others only when the whole host is recorded. */
struct error *processes_scan(struct processes *p, const uint32_t *pids, uint32_t pid_count);
/*
 * Reads one process, and replaces the one that the table had under this pid. `in_scope`: the user asked for it. A
 * process that has ended is no error: `*out` is NULL then.
 */
struct error *processes_read(struct processes *p, uint32_t tgid, bool in_scope, uint64_t time_ns, struct process **out);
/*
 * Adds the mappings that are read from `maps`, as far as the process's quota lets them be read; then maps->cut is set.
 * `seen` (may be NULL) gets their addresses.
 */
struct error *processes_add_mappings(struct processes *p, struct process *process, struct procfs_maps *maps,
                                     uint64_t time_ns, struct address_ranges *seen);

#endif
