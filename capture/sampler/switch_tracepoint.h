/* SPDX-License-Identifier: Apache-2.0 */
/* What the running kernel passes to programs at a switch between threads (the tracepoint sched_switch), by its BTF. */
#ifndef CAPTURE_SAMPLER_SWITCH_TRACEPOINT_H
#define CAPTURE_SAMPLER_SWITCH_TRACEPOINT_H

#include <stdbool.h>

#include "formats/base/err.h"

/*
 * Stores whether the tracepoint has the state of the thread that leaves as its fourth argument, as Linux 5.19 and its
 * successors do. An error if the arguments are not those that bpf/sampler_wait.h knows.
 */
struct error *switch_tracepoint_check(bool *has_state);

#endif
