/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a session, one after the other, and the account that stands at the end of each. */
#ifndef CAPTURE_SESSION_SESSION_FILES_H
#define CAPTURE_SESSION_SESSION_FILES_H

#include "capture/session/session_parts.h"

/* Sums s->losses up anew, over all that count. */
void session_sum_losses(struct session *s);
/* Samples that are not in the file at all; the other losses leave a sample with less in it. */
uint64_t session_lost_samples(const struct session *s);
/* Written so far, into all files. */
uint64_t session_bytes(const struct session *s);

/* Opens the (next) file; what is counted per file begins here. */
struct error *session_open_file(struct session *s, uint64_t time_ns);
/* Puts into the file what stands at its end, and closes it. Everything up to `time_ns` has been recorded. */
struct error *session_end_file(struct session *s, uint64_t time_ns, enum trace_end_reason reason);
bool session_rotation_due(const struct session *s, uint64_t time_ns);
/* Goes on in another file: what was sampled before `time_ns` stands in the one before, what comes then in this one. */
struct error *session_rotate(struct session *s, uint64_t time_ns);

#endif
