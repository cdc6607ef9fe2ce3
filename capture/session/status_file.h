/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the file of --status: how the recording is, as figures for Prometheus (formats/base/metrics.h). */
#ifndef CAPTURE_SESSION_STATUS_FILE_H
#define CAPTURE_SESSION_STATUS_FILE_H

#include "capture/session/session_parts.h"

/* Whether the file was asked for, and is older than it may be. */
bool status_file_due(const struct session *s, uint64_t time_ns);
/*
 * Writes it anew if it was asked for. A file that cannot be written is told once, and disturbs nothing. Call
 * session_sum_losses() before.
 */
void status_file_write(struct session *s, uint64_t time_ns);
/* The same for the last time: says that nothing is recorded any more. */
void status_file_end(struct session *s, uint64_t time_ns);

#endif
