/* SPDX-License-Identifier: Apache-2.0 */
/* The labels of a sample: what its thread runs in, what it waits for, and who ended that. */
#ifndef CAPTURE_TRACE_SAMPLE_LABELS_H
#define CAPTURE_TRACE_SAMPLE_LABELS_H

#include "capture/trace/trace_parts.h"

/*
 * Writes the sample's labels and returns the id of their set; 0 when it has none. `task` holds the m->task_len_bytes
 * bytes that the sampler copied of the name of the running asyncio task, or with WIRE_TASK its text; with 0 of them `p` may be NULL. `waker` is what
 * sample_waker() returned.
 */
uint32_t sample_labels(struct trace_builder *b, struct process *p, const struct wire_sample *m, const uint8_t *task,
                       uint32_t waker);
/* Writes who ended the wait that the sample is of, and returns the id of that string in this epoch; 0: not known. */
uint32_t sample_waker(struct trace_builder *b, const struct wire_sample *m);

#endif
