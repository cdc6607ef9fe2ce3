/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the table of processes from /proc: when a capture begins, and again where side-band
 * events were lost.
 */
#ifndef CAPTURE_PROCESS_PROCESSES_PROC_H
#define CAPTURE_PROCESS_PROCESSES_PROC_H

#include "capture/process/process_table.h"

/* Reads all processes of the host. Selects those in `pids`; the others only when the whole host is recorded. */
struct error *processes_scan(struct processes *p, const uint32_t *pids, uint32_t pid_count);
/*
 * Reads one process, and replaces the one that the table had under this pid. `in_scope`: the user asked for it. A
 * process that has ended is no error: `*out` is NULL then.
 */
struct error *processes_read(struct processes *p, uint32_t tgid, bool in_scope, uint64_t time_ns, struct process **out);
/*
 * If events were lost since the last call, compares all processes with /proc and corrects the table. Call periodically.
 */
struct error *processes_rescan(struct processes *p, uint64_t time_ns);

#endif
