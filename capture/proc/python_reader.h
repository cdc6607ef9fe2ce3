/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Python stacks of other processes from outside: the frame walk of the sampler (bpf/python_walk.h) over
 * process_vm_readv(). Nothing stops the process, so the caller has to know whether the thread ran meanwhile. What is read
 * is hostile: the walk is bounded, and whatever it meets ends it with a reason.
 */
#ifndef CAPTURE_PROC_PYTHON_READER_H
#define CAPTURE_PROC_PYTHON_READER_H

#include <sys/types.h>

#include "bpf/python_walk.h"

struct python_reader {
    struct py_walk walk; /* config is set by the caller */
    pid_t pid;           /* the process that is read; set by the caller */
    int read_errno;      /* of the last read that failed since the caller reset it */
};

void python_reader_init(struct python_reader *r);
/*
 * Finds the thread state of the thread whose thread pointer and stack pointer are in walk.config: walk.result.tstate, 0:
 * it has none. Searches the interpreters' lists where nothing else names it, up to a limit.
 */
void python_reader_find(struct python_reader *r);
/*
 * Walks the frames of the thread state at `state` into `entries`, which has room for WIRE_PYTHON_MAX. Sets what a sample
 * says of them: python_count and python_end, thread_handle (0: the state could not be read), interpreter and its id.
 */
void python_reader_walk(struct python_reader *r, uint64_t state, struct wire_sample *sample, struct wire_python *entries);

#endif
