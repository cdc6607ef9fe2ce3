/* SPDX-License-Identifier: Apache-2.0 */
/* How the sampler can tell whether an interrupt called it (bpf/sampler_waking.h). */
#ifndef CAPTURE_SAMPLER_PREEMPT_COUNT_H
#define CAPTURE_SAMPLER_PREEMPT_COUNT_H

#include "formats/base/err.h"

/*
 * Stores how far behind the CPU's run queue (the variable `runqueues`) its preemption count lies, in bytes: the variable
 * `__preempt_count`, or from Linux 6.2 to 6.14 `pcpu_hot`, which has it as a member. An error: this kernel does not say so.
 */
struct error *preempt_count_find(long long *from_queue);

#endif
