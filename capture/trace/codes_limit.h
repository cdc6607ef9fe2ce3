/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds the memory that known code objects take. The process that has most of it loses first. */
#ifndef CAPTURE_TRACE_CODES_LIMIT_H
#define CAPTURE_TRACE_CODES_LIMIT_H

#include "capture/trace/codes.h"
#include "capture/trace/trace_notes.h"

/*
 * Forgets code objects until what is known of them takes at most `most` bytes: first contents that only processes which
 * have ended had, then all of the process that has most, and so on. What is met again is read from its process.
 */
struct error *codes_limit(struct codes *c, struct trace_notes *notes, uint64_t most);

#endif
