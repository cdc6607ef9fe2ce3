/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blame: samples of threads that held an interpreter's lock (GIL) while others waited for it, with the time that those
 * lost as their value. They are an event of their own, with the stack, the labels and the time of the samples that they come with:
 * ticks of a clock, each for as many threads as waited then, and waits, of which the sampler knows it exactly.
 */
#ifndef CAPTURE_TRACE_BLAME_H
#define CAPTURE_TRACE_BLAME_H

#include "capture/trace/trace_parts.h"

/* Defines the event in this epoch, if a process like this one can have samples of it and waits are recorded. */
void blame_define(struct trace_builder *b, const struct process *p);
/* Writes the blame of a sample, which has been written from the message `m`; nothing if it has none. */
void blame_write(struct trace_builder *b, const struct wire_sample *m, const struct trace_sample *sample);
/* Writes a sample like this one, with a value in ns; nothing if that is 0. */
void blame_put(struct trace_builder *b, const struct trace_sample *like, uint64_t blame_ns);

#endif
