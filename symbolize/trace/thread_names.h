/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace calls threads. Where it has no name, stacks may tell one: symbolize/stack/faces.h. */
#ifndef SYMBOLIZE_TRACE_THREAD_NAMES_H
#define SYMBOLIZE_TRACE_THREAD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "symbolize/trace/epoch.h"

/* Whether it is the main thread of a Python. The kernel's name of it is that of the process, or of the thread that forked it. */
bool thread_is_main(const struct epoch *e, uint32_t thread);
/*
 * Python's name of a thread of the epoch, else the kernel's; the first thread of a Python is "MainThread" if nothing else is
 * known, as the kernel's name of it is that of the process. In traces of kind UNRECORDED that stays. Lives as long as the epoch.
 */
const char *thread_name_of(const struct epoch *e, uint32_t thread);
/* Whether the kernel's name of a thread is all that is known, and was given to it by none: it has that of the process. */
bool thread_is_nameless(const struct epoch *e, uint32_t thread);

#endif
