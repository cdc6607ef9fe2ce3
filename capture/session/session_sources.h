/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where samples come from: the BPF sampler with its side-band, or the proc backend; and the processes that are there
 * already. In this order: begin, find processes, end.
 */
#ifndef CAPTURE_SESSION_SESSION_SOURCES_H
#define CAPTURE_SESSION_SESSION_SOURCES_H

#include "capture/session/session_parts.h"

bool session_takes_tables(const struct session_options *o);

/* Forks the processes beside that BPF needs, while there is one thread. */
struct error *session_begin_helpers(struct session *s);

/* Has a thread open the sampler, if BPF is wanted. An error says why nothing can be recorded as it was asked for. */
struct error *session_begin_sources(struct session *s);
/* Creates the table of processes. With BPF enables the side-band and reads from /proc who is there. */
struct error *session_find_processes(struct session *s);
/*
 * Waits for the sampler: s->sampler. If BPF is not wanted, or cannot be had and the proc backend will do, creates that
 * instead, s->proc, and s->sampler is NULL.
 */
struct error *session_end_sources(struct session *s);
/* Restores the nice value that pycap was started with, unless --nice was given, and its policy of scheduling. */
void session_go_as_started(const struct session *s);

#endif
