/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes as /proc has them: those that are there when a capture begins, and what the
 * side-band would have said where events were lost.
 */
#ifndef CAPTURE_PROCESS_PROCESSES_PROC_H
#define CAPTURE_PROCESS_PROCESSES_PROC_H

#include "capture/process/process_table.h"

/* Reads all processes of the host from /proc; `pids` become selected, the others only where the whole host is in scope. */
struct error *processes_scan(struct processes *p, const uint32_t *pids, uint32_t pid_count);
/*
 * Reads one process from /proc; one that was known under the number is replaced. One that has gone is no error: `*out` is
 * NULL. `in_scope`: it is among those asked for.
 */
struct error *processes_read(struct processes *p, uint32_t tgid, bool in_scope, uint64_t time_ns, struct process **out);
/* Reads from /proc what lost events would have said, if any were lost. Call now and then. */
struct error *processes_rescan(struct processes *p, uint64_t time_ns);

#endif
