/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the table of processes from /proc: when a capture begins, and where an event or a sample names one unknown. */
#ifndef CAPTURE_PROCESS_PROCESSES_PROC_H
#define CAPTURE_PROCESS_PROCESSES_PROC_H

#include "capture/host/procfs_maps.h"
#include "capture/process/process_table.h"

/*
 * Reads the processes in `pids`, and selects them; when the whole host is recorded, all others as well. Else those that
 * descend from them, if children are followed: of the others nothing is read but who their parents are, so that their
 * number costs little and what they have mapped nothing.
 */
struct error *processes_scan(struct processes *p, const uint32_t *pids, uint32_t pid_count);
/*
 * Reads one process, and replaces the one that the table had under this pid. `in_scope`: the user asked for it.
 * Mappings are read only if the filter passes it, too. A process that has ended is no error: `*out` is NULL then; so it
 * is for one that the user did not ask for.
 */
struct error *processes_read(struct processes *p, uint32_t tgid, bool in_scope, uint64_t time_ns, struct process **out);
/*
 * Tries again to tell which of the undecided processes pass the filter; a process that passes is sampled from now on. In the end one
 * that cannot be named does not pass.
 */
struct error *processes_decide(struct processes *p, uint64_t time_ns);
struct error *processes_decide_one(struct processes *p, struct process *process, uint64_t time_ns);
/* Finds out from /proc whose a process is. False: that cannot be read any more, and is as it was. */
bool processes_read_owner(struct processes *p, struct process *process);
/* Reads and adds the mappings of a process that the filter has just let pass. */
struct error *processes_read_mappings(struct processes *p, struct process *process, uint64_t time_ns);
/*
 * Adds the mappings that are read from `maps`, as far as the process's quota lets them be read; then maps->cut is set.
 * `seen` (may be NULL) gets their addresses.
 */
struct error *processes_add_mappings(struct processes *p, struct process *process, struct procfs_maps *maps,
                                     uint64_t time_ns, struct address_ranges *seen);

#endif
