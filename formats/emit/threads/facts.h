/* SPDX-License-Identifier: Apache-2.0 */
/* What samples, labels and the kernel say of a thread. */
#ifndef FORMATS_EMIT_THREADS_FACTS_H
#define FORMATS_EMIT_THREADS_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/emit/threads/threads_data.h"

/* The frame of the wait is not the program's: the stack without it. */
uint32_t threads_own_stack(const struct emit_model *m, uint32_t stack);
/* The value of a label; NULL: the set has no such label. */
const char *threads_label(const struct emit_label_set *set, const char *key);
/* In the order of enum emit_wait. */
extern const char *const threads_states[EMIT_WAITS];
/* Whether what is known of a thread is of the end: it is in a wait that goes on, or ran a moment ago; or has no stack. */
bool threads_is_now(const struct shown_thread *e);
/*
 * What a thread did at the end, in a word of the above; "ended", "traced"; "ran": at its last sample, or since; more is not
 * known.
 */
const char *threads_state_of(const struct shown_thread *e);
/* Its wait as it is shown: since when, and whether that is known. */
uint64_t threads_waited_ns(const struct shown_thread *e, bool *known);

#endif
