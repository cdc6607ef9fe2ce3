/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording into a pipe does not wait for the pipe's reader. While that has much to take, samples are left out and counted
 * (reader_slow); what defines processes, code and stacks is still written. While it has stopped, nothing is written, and then
 * an epoch begins, which defines everything anew.
 */
#ifndef CAPTURE_SESSION_SESSION_READER_H
#define CAPTURE_SESSION_SESSION_READER_H

#include "capture/session/session_parts.h"

/* Finds out how the reader does, if the output is a pipe, and what is to be left out. Call it before each drain. */
void session_heed_reader(struct session *s, uint64_t time_ns);
/* The last drain, behind which the records at the trace's end are written, and waited for, however slow the reader is. */
struct error *session_drain_for_reader(struct session *s);
/*
 * A reader that goes away ends the recording, which is no error: sets s->reader_gone, and says so unless the recording is quiet.
 * Any other error is returned.
 */
struct error *session_forgive_reader(struct session *s, struct error *err);

#endif
