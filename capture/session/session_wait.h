/* SPDX-License-Identifier: Apache-2.0 */
/* Computes when a session has something to do next. Times are CLOCK_MONOTONIC, in nanoseconds. */
#ifndef CAPTURE_SESSION_SESSION_WAIT_H
#define CAPTURE_SESSION_SESSION_WAIT_H

#include "capture/session/session_parts.h"

/* How long side-band events are collected before they are applied, in nanoseconds. */
uint64_t session_news_ns(const struct session *s, uint64_t time_ns);
/* The time until which to sleep, unless something arrives. `last_ns`: when the ring was last drained. */
uint64_t session_due_ns(const struct session *s, uint64_t last_ns, uint64_t time_ns, bool terminal);

#endif
