/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a session within --max-cpu, --max-memory and --max-size: once a second it frees caches and adjusts the rates.
 */
#ifndef CAPTURE_SESSION_SESSION_BUDGET_H
#define CAPTURE_SESSION_SESSION_BUDGET_H

#include "capture/session/session_parts.h"

/* What the session has cost so far. */
struct budget_use session_use(const struct session *s, uint64_t time_ns);
/* Call before the first sample: returns an error when --max-memory is too small to begin with. */
struct error *session_check_memory(const struct session *s);
/* Call once a second: empties caches that can be refilled, when they take too much memory. */
struct error *session_limit_memory(struct session *s, uint64_t time_ns);
/* Writes how often each event ticks now: "99 Hz", or with several "cpu-clock 99 Hz, page-faults each 16 faults". */
void session_print_rates(const struct session *s, FILE *out);
/* Writes that --max-cpu cannot be kept, since what no rate changes takes more: call where s->budget.fixed is not 0. */
void session_print_fixed(const struct session *s, FILE *out);
/* Call once a second: changes the rates if the budget requires it, or ends the capture (s->stop). */
struct error *session_keep_budget(struct session *s, uint64_t time_ns);

#endif
