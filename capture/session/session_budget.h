/* SPDX-License-Identifier: Apache-2.0 */
/* What a session may cost: looked at once a second. What can be forgotten is, and the rate follows. */
#ifndef CAPTURE_SESSION_SESSION_BUDGET_H
#define CAPTURE_SESSION_SESSION_BUDGET_H

#include "capture/session/session_parts.h"

/* What it has cost so far. */
struct budget_use session_use(const struct session *s, uint64_t time_ns);
/* Before the first sample: is there room for more within what is allowed? */
struct error *session_check_memory(const struct session *s);
/* Once a second: forgets what can be met again where there is too much of it. */
struct error *session_limit_memory(struct session *s, uint64_t time_ns);
/* Says how often each event ticks now: "99 Hz", or of several "cpu-clock 99 Hz, page-faults each 16 faults". */
void session_print_rates(const struct session *s, FILE *out);
/* Once a second: changes the rates where the budget says so, or ends the capture. */
struct error *session_keep_budget(struct session *s, uint64_t time_ns);

#endif
