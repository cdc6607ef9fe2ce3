/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the Python stack of a thread of a followed process: finds its thread states, and sees to it that it does not run. */
#ifndef CAPTURE_PROC_THREAD_READER_H
#define CAPTURE_PROC_THREAD_READER_H

#include <sched.h>

#include "capture/proc/followed.h"
#include "capture/proc/python_reader.h"

struct thread_message {
    struct wire_sample sample;
    struct wire_python entries[WIRE_PYTHON_MAX];
    bool of_rival; /* they are of the interpreter that runs beside the first */
};

/* The caller sets python.pid and python.walk.config for each process, and `round` anew for each look at all of them. */
struct thread_reader {
    struct python_reader python;
    uint64_t round;    /* lists of thread states are read once in each, at most */
    cpu_set_t allowed; /* CPUs that pycap may run on */
    int cpu;           /* the CPU that pycap is bound to; -1: none yet */
    uint64_t still;    /* stacks of threads that provably did not run while they were read */
    struct thread_message out, reading;
};

void thread_reader_init(struct thread_reader *r);
/* Frees the CPU that pycap bound itself to. */
void thread_reader_deinit(struct thread_reader *r);

enum thread_outcome {
    THREAD_READ,
    THREAD_ASLEEP,
    THREAD_GONE,
    THREAD_CHANGED, /* it executes another program */
};
/* Reads the thread's stack into r->out, exact when the thread can be kept from running. `run_ns`: its CPU time then. */
struct error *thread_reader_stack(struct thread_reader *r, struct followed *f, const struct process *p,
                                  const struct followed_task *t, uint64_t *run_ns, enum thread_outcome *outcome);
/*
 * The frames of a thread that does not run. A thread may have several states (interpreters in one thread): it runs in the one that has
 * frames. None at all: it runs no Python, python_end 0.
 */
struct error *thread_reader_walk(struct thread_reader *r, struct followed *f, const struct process *p,
                                 const struct followed_task *t, struct thread_message *m);

#endif
