/* SPDX-License-Identifier: Apache-2.0 */
/* What `pycap record` tells its user: a status line while it runs, and a summary at the end. */
#ifndef CAPTURE_SESSION_REPORT_H
#define CAPTURE_SESSION_REPORT_H

#include "capture/session/session_parts.h"

/* Writes the status line, over the previous one. For terminals. */
void report_status(struct session *s, uint64_t time_ns);
/* Writes what was recorded and lost, what to know about it, and the next command to run. `end_ns` is CLOCK_MONOTONIC. */
void report_summary(struct session *s, uint64_t end_ns);

#endif
