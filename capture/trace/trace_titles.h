/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Titles that processes give themselves while they are recorded: the kernel's name always, and the command line, which a program
 * may overwrite, where command lines were asked for.
 */
#ifndef CAPTURE_TRACE_TRACE_TITLES_H
#define CAPTURE_TRACE_TRACE_TITLES_H

#include "capture/trace/trace_parts.h"

/* The command line of a process as it is now, or as it was last seen; borrowed until the next call for it. NULL: unknown. */
const char *trace_titles_cmdline(struct process_note *n);
/* Writes the kernel's name of a process that has its record in this epoch, and its command line, unless that was read just now. */
void trace_titles_renamed(struct trace_builder *b, struct process_note *n, uint64_t time_ns);
/*
 * Reads the command lines of processes that have another name since, where that was too soon after the last time; with `all` those
 * of all processes that are in the epoch. Writes those that have changed. Nothing where command lines were not asked for.
 */
void trace_titles_read(struct trace_builder *b, uint64_t time_ns, bool all);

#endif
