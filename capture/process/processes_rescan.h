/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corrects the table of processes from /proc after side-band events were lost. Any process can bring
 * that about, by mapping memory in a loop; so the work is done in slices with long rests, in which
 * samples are drained, and the processes that are sampled come first.
 */
#ifndef CAPTURE_PROCESS_PROCESSES_RESCAN_H
#define CAPTURE_PROCESS_PROCESSES_RESCAN_H

#include "capture/process/process_table.h"

/* Does a slice of what is due. Call when `time_ns` (now) has reached processes_rescan_due(). */
struct error *processes_rescan(struct processes *p, uint64_t time_ns);
/* When processes_rescan() has to be called next, CLOCK_MONOTONIC; UINT64_MAX: no events were lost. */
uint64_t processes_rescan_due(const struct processes *p);
/*
 * Reads the mappings of a process again if events about it may have been lost since it was last read, or left out. Call when a
 * sample of it arrives; it paces itself.
 */
struct error *processes_recheck(struct processes *p, struct process *process, uint64_t time_ns);

#endif
