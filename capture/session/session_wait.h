/* SPDX-License-Identifier: Apache-2.0 */
/* When a session has something to do next. */
#ifndef CAPTURE_SESSION_SESSION_WAIT_H
#define CAPTURE_SESSION_SESSION_WAIT_H

#include "capture/session/session_parts.h"

/* How long news from the side-band are gathered, in nanoseconds. */
uint64_t session_news_ns(const struct session *s, uint64_t time_ns);
/* Until when to wait, if nothing comes, after the ring was drained at `last_ns`. */
uint64_t session_due_ns(const struct session *s, uint64_t last_ns, uint64_t time_ns, bool terminal);

#endif
