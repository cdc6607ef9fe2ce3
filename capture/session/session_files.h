/* SPDX-License-Identifier: Apache-2.0 */
/* Opens, rotates and ends the files of a session. */
#ifndef CAPTURE_SESSION_SESSION_FILES_H
#define CAPTURE_SESSION_SESSION_FILES_H

#include "capture/session/session_parts.h"

/* The number of bytes written so far, to all files. */
uint64_t session_bytes(const struct session *s);

/* Opens the first or next file, and starts the counts that are kept per file. With --on-demand it lies in memory. */
struct error *session_open_file(struct session *s, uint64_t time_ns);
/*
 * Writes the records that end a file, and closes it, even if some of that fails. Everything up to `time_ns` must have
 * been recorded. Returns the first error.
 */
struct error *session_end_file(struct session *s, uint64_t time_ns, enum trace_end_reason reason);
/* Whether --rotate, --rotate-size or SIGHUP asks for a new file. */
bool session_rotation_due(const struct session *s, uint64_t time_ns);
/* Ends the file and opens the next one. Samples before `time_ns` are in the old file, later ones in the new one. */
struct error *session_rotate(struct session *s, uint64_t time_ns);

#endif
