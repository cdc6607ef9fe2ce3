/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which source files the trace builder asks for: that of each code object, when a new stack of a process has it for the
 * first time in an epoch. A sample with a known stack costs nothing.
 */
#ifndef CAPTURE_TRACE_TRACE_SOURCES_H
#define CAPTURE_TRACE_TRACE_SOURCES_H

#include "capture/trace/trace_parts.h"

/* A frame of the process has these contents (an index in struct codes), which are in the epoch with that id. */
struct error *trace_sources_met(struct trace_builder *b, struct process_note *n, uint32_t contents, uint32_t code);
/* Writes what is known of the files of the epoch, which ends; answers are waited for a little. */
struct error *trace_sources_end_epoch(struct trace_builder *b);
/* Asks for source files that were met, and writes what is known of them by now. Call when a stretch of samples is done. */
void trace_builder_serve_sources(struct trace_builder *b);
/* Writes what is known of the rest, and which have changed. Call at the end of a file; `rotated`: another one follows. */
struct error *trace_builder_end_sources(struct trace_builder *b, bool rotated);

#endif
