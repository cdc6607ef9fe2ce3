/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes profiles to a pipe, in the process that reads a trace: a sink of the parts of a pprof output that is split by series,
 * event and window (symbolize/pass/parts.h).
 */
#ifndef SYMBOLIZE_PUSH_PROFILE_SINK_H
#define SYMBOLIZE_PUSH_PROFILE_SINK_H

#include "symbolize/pass/parts.h"
#include "symbolize/push/message.h"
#include "symbolize/push/series.h"

struct profile_sink;
/* All arguments are borrowed. */
struct error *profile_sink_create(struct profile_pipe *pipe, struct series *series, struct limits *limits, struct profile_sink **out);
struct part_sink *profile_sink_parts(struct profile_sink *p);
void profile_sink_destroy(struct profile_sink *p);

#endif
