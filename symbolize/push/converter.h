/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces are read by other processes than the one that sends: a trace that takes its reader over finds neither a network nor
 * a token. A first process is forked before there are secrets, sockets and threads; it forks another for each trace, which
 * confines itself, reads it, and writes messages to a pipe (message.h). It gets the trace as an open file, so that it is the
 * one that was meant, even where the file has been replaced or removed since. Several traces can be read at a time, by a
 * converter each; whose messages are not asked for waits when its pipe is full.
 */
#ifndef SYMBOLIZE_PUSH_CONVERTER_H
#define SYMBOLIZE_PUSH_CONVERTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "symbolize/push/message.h"
#include "symbolize/push/trace_processes.h"

enum { CONVERTERS_MAX = TRACE_PROCESSES_MAX };

struct converters;
struct converter;
/*
 * `count` is 1 to CONVERTERS_MAX. Call before secrets are read and before there are threads. `own` is borrowed. The
 * processes overwrite the secrets in their environment.
 */
struct error *converters_create(uint32_t count, converter_run *run, void *own, struct converters **out);
/* Ends all processes. Accepts NULL. */
void converters_destroy(struct converters *all);
/* One that reads no trace; NULL: all do. */
struct converter *converters_idle(struct converters *all);
/* Ends the processes of all traces, wherever they are. */
struct error *converters_end(struct converters *all);

/* Begins with a trace: one at a time, and after the last message of the one before. The trace is borrowed until this returns. */
struct error *converter_begin(struct converter *c, const struct converter_trace *trace, enum converter_task task);
/* Can be read when converter_next() has something to do; -1: there is no trace. */
int converter_fd(const struct converter *c);
/*
 * Takes the next message, if it is there: else `*came` is false. Profiles come in the order of their windows. While nobody
 * asks, the process waits. After CONVERTER_END or CONVERTER_FAILED it is gone. It is an error if the first process is gone:
 * nothing can be read any more.
 */
struct error *converter_next(struct converter *c, struct converter_message *out, bool *came);
/* Ends the process of the current trace, wherever it is. */
struct error *converter_end(struct converter *c);

#endif
