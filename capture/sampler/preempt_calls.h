/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of kernel functions that keep a thread on its CPU, in the programs of tracepoints. */
#ifndef CAPTURE_SAMPLER_PREEMPT_CALLS_H
#define CAPTURE_SAMPLER_PREEMPT_CALLS_H

#include <stdbool.h>

#include "formats/base/err.h"

struct bpf_object;

/*
 * Stores whether this kernel lets threads lose their CPU in a program of a system call's tracepoint. Where it does, puts the calls
 * that prevent it into all programs of tracepoints of an object that is open and not loaded.
 */
struct error *preempt_calls_put(struct bpf_object *obj, bool *preemptible);

#endif
