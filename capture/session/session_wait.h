/* SPDX-License-Identifier: Apache-2.0 */
/* Computes when a session has something to do next, and sleeps until then. Times are CLOCK_MONOTONIC, in nanoseconds. */
#ifndef CAPTURE_SESSION_SESSION_WAIT_H
#define CAPTURE_SESSION_SESSION_WAIT_H

#include <poll.h>

#include "capture/session/session_parts.h"

/* What a session waits for: the places of its file descriptors. Behind them are those of the side-band. */
enum session_fd {
    SESSION_FD_SIGNAL,
    SESSION_FD_COMMAND,
    SESSION_FD_TABLES,
    SESSION_FD_SAMPLER,
    SESSION_FD_MODULES,
    SESSION_FD_INTERRUPT,
    SESSION_FDS,
};

/* How long side-band events are collected before they are applied, in nanoseconds. */
uint64_t session_news_ns(const struct session *s, uint64_t time_ns);
/* The time until which to sleep, unless something arrives. `last_ns`: when the ring was last drained. */
uint64_t session_due_ns(const struct session *s, uint64_t last_ns, uint64_t time_ns, bool terminal);
/*
 * Sleeps until `due_ns`, or until something has arrived that is worth a drain: then until more of it has gathered. `*time_ns` is
 * the time before, and afterwards.
 */
struct error *session_wait(struct session *s, struct pollfd *fds, uint32_t fd_count, uint64_t last_ns, uint64_t due_ns,
                           uint64_t *time_ns);

#endif
