/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sample says beside its stack in Python's words: the thread's name, read from the running process, and the
 * sample's labels.
 */
#ifndef CAPTURE_PROCESS_PYTHON_NAMES_H
#define CAPTURE_PROCESS_PYTHON_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "capture/process/processes.h"
#include "formats/base/buf.h"
#include "formats/trace/trace.h"

/* Scratch. {0} is empty. */
struct python_names {
    struct buf storage, text, again;
};
void python_names_deinit(struct python_names *n);

/*
 * Looks for the name of a sampled thread when it is first met, then now and then, less and less often: threads are
 * named late, and renamed. True when t->python_name has changed.
 */
bool python_names_thread(struct python_names *n, struct process *p, struct thread *t, const struct wire_sample *m);
/* The id of the sample's label set; 0 when it has no labels. `task` are its m->task_len_bytes. */
uint32_t python_names_labels(struct python_names *n, struct trace_writer *w, struct process *p,
                             const struct wire_sample *m, const uint8_t *task);

#endif
