/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes profiles to a pipe, in the process that reads a trace: a sink of the parts of a pprof output that is split by series,
 * event and window (symbolize/pass/parts.h). What was lost in a window is a profile, too, and then a message for each loss.
 */
#ifndef SYMBOLIZE_PUSH_PROFILE_SINK_H
#define SYMBOLIZE_PUSH_PROFILE_SINK_H

#include "symbolize/pass/parts.h"
#include "symbolize/push/message.h"
#include "symbolize/push/series.h"
#include "symbolize/push/store.h"

/* A stack has at most so many locations: stores cut deeper ones at the wrong end. */
enum { PROFILE_DEPTH_MAX = 1000 };

struct profile_sink;
/* All arguments are borrowed. `store`: profiles are not larger than it takes them. */
struct error *profile_sink_create(const struct profile_pipe *pipe, const struct store_kind *store, struct series *series,
                                  struct limits *limits, struct profile_sink **out);
struct part_sink *profile_sink_parts(struct profile_sink *p);
/* Samples in whose stacks frames were left out since they had more than PROFILE_DEPTH_MAX. */
uint64_t profile_sink_cut_count(const struct profile_sink *p);
void profile_sink_destroy(struct profile_sink *p);

#endif
