/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder (--on-demand): records into memory, and writes a file when an event is reported: what was kept of the
 * time before it (--before), and what follows (--after).
 *
 * What is kept consists of parts (flight_store.h), each a rotation of its own: it begins with epochs that define all that
 * they refer to, and ends with the counts of ticks, losses and waiting times of what is in it. So a file of any of them in
 * a row is a trace like others. Memory is dropped with kill -9.
 *
 * Functions that are given a session without --on-demand do nothing.
 */
#ifndef CAPTURE_SESSION_FLIGHT_H
#define CAPTURE_SESSION_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/err.h"
#include "formats/trace/trace.h"

struct session;

struct flight_counts {
    uint64_t signals, conditions; /* events, by what reported them */
    uint64_t joined;              /* of these, those that came while a file was written, which goes on for longer then */
    uint64_t files, failed;       /* files that are complete; events that have none, as it could not be written */
    uint64_t samples, last_samples; /* in all files, and in the last one, whether they are complete or not */
    uint64_t lost, duration_ns;     /* of the files that are complete: the samples that they lack, and how long they last */
};

/* Checks that files can be made where --output says, and sets s->flight. */
struct error *flight_create(struct session *s);
void flight_destroy(struct session *s);
/* Takes blocks of the trace; the `write` of a trace_writer, whose context is the session. */
ssize_t flight_write(void *session, int fd, const void *data, size_t len_bytes);
/* Recording begins at `time_ns`, with the writer's first block to come. */
struct error *flight_begin(struct session *s, uint64_t time_ns);

/* An event: a file is begun, or the one that is written goes on for longer. `why` is for people and for the trace. */
struct error *flight_event(struct session *s, uint64_t time_ns, const char *why, bool by_signal);
/* Does what is due: writes, ends files, begins parts, forgets. Call after each drain; what is older than EVENT_DELAY_NS is recorded. */
struct error *flight_tend(struct session *s, uint64_t time_ns);
/* When flight_tend() has something to do next. UINT64_MAX: no particular time. */
uint64_t flight_due_ns(const struct session *s);
/*
 * Ends the recording. A file that is being written gets its end. While none is, none is begun, unless `reason` is the end of
 * a command that failed: that is an event.
 */
struct error *flight_end(struct session *s, uint64_t time_ns, enum trace_end_reason reason);
/* Forgets the oldest parts, until so many bytes less are held or only the newest part is left. True: something was forgotten. */
bool flight_forget(struct session *s, uint64_t bytes);

/* Whether a file is being written. */
bool flight_writes(const struct session *s);
struct flight_counts flight_counts(const struct session *s);
/* Bytes of all files, also of those that are not complete. */
uint64_t flight_file_bytes(const struct session *s);
/* Bytes that are kept in memory, and when the oldest of it was recorded (CLOCK_MONOTONIC). */
uint64_t flight_kept_bytes(const struct session *s);
uint64_t flight_kept_since_ns(const struct session *s);

#endif
