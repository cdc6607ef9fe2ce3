/* SPDX-License-Identifier: Apache-2.0 */
/* What `pycap record` tells its user: a line while it runs, and what came of it. */
#ifndef CAPTURE_SESSION_REPORT_H
#define CAPTURE_SESSION_REPORT_H

#include "capture/session/session_parts.h"

/* The line that is written over, while recording to a terminal. */
void report_status(struct session *s, uint64_t time_ns);
/* Why a process without an interpreter cannot be recorded; whether it is one may not be known. */
struct error *report_no_python(const struct session *s, const struct process *p);
/* What was recorded, and what next. */
void report_summary(struct session *s, uint64_t end_ns);

#endif
