/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call sites of waits: a thread, a system call and where its newest Python frames are (bpf/sampler_wait.h). Of few waits
 * there the stack was taken; the time of the others is known, and is given to the stacks that were. A stack was taken with
 * a known chance, so its wait stands for as many others as the chance was rare; each stack is given time in proportion to
 * what it stands for. So a caller that waits long has its share, however often others wait at the same place, and however
 * the chance changes. And so has the thread that ended its waits: as with a stack, that the others were ended by it is an
 * estimate.
 */
#ifndef CAPTURE_TRACE_WAIT_SITES_H
#define CAPTURE_TRACE_WAIT_SITES_H

#include "capture/trace/trace_parts.h"

/*
 * The last sample of a wait, of each kind, is about to be written: remembers it, and writes what its site owes
 * (m->owed_ns) as a sample of its own, so that a reader knows which times were measured with their stack. False: out of memory.
 */
bool wait_sites_pay(struct trace_builder *b, const struct wire_sample *m, const struct trace_sample *sample);
/* Forgets all sites: their ids are those of an epoch. */
void wait_sites_clear(struct trace_builder *b);
/* Writes what a call site owes at the end of the capture. Does nothing when the epoch has no sample of a wait there. */
void trace_builder_owed(struct trace_builder *b, uint64_t site, const struct wire_wait_site *owed, uint64_t time_ns);

#endif
