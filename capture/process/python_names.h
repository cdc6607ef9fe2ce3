/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that Python gives: the name of a thread (threading.Thread), read from the running process, and of the asyncio
 * task that runs.
 */
#ifndef CAPTURE_PROCESS_PYTHON_NAMES_H
#define CAPTURE_PROCESS_PYTHON_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "capture/process/process.h"
#include "formats/base/buf.h"
#include "formats/trace/trace.h"

/* Scratch. {0} is empty. */
struct python_names {
    struct buf storage, text, again;
};
void python_names_deinit(struct python_names *n);

/*
 * Reads the name of a sampled thread from its process when the thread is first seen, and again at growing intervals,
 * since programs name and rename threads late. Returns true when t->python_name has changed.
 */
bool python_names_thread(struct python_names *n, struct process *p, struct thread *t, const struct wire_sample *m);
/*
 * Puts the name of the asyncio task that ran into n->text; false when it has none that can be read. `task` holds the
 * m->task_len_bytes bytes that the sampler copied of it.
 */
bool python_names_task(struct python_names *n, struct process *p, const struct wire_sample *m, const uint8_t *task);
/*
 * The file of the main module of a process that has_python, into n->text; false: it cannot be told. `of_parent`: it is that of a
 * parent that began the process by multiprocessing. Where the program sets it meanwhile, a mixture may be read.
 */
bool python_names_main_file(struct python_names *n, struct process *p, bool *of_parent);

#endif
