/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a recording, as the process sees them that reads other processes: a second process, the writer, has them
 * open (output_server.h), and is asked over a socket. A program that takes over the reader can fill these files, but
 * cannot touch any other.
 *
 * A request waits for its answer, as write(2) waits for a disk; signals interrupt that wait (interrupt.h). The reader of a
 * pipe is waited for only when the pipe is opened and closed: what it has not taken is kept by the writer (stream_queue.h).
 */
#ifndef CAPTURE_OUTPUT_OUTPUTS_H
#define CAPTURE_OUTPUT_OUTPUTS_H

#include <stdint.h>
#include <sys/types.h>

#include "capture/output/archive_file.h"
#include "capture/output/output_protocol.h"
#include "capture/output/output_server.h"
#include "formats/base/err.h"

struct outputs;
/*
 * Forks the writer. Call it before there are threads and large allocations. The strings in `options` are borrowed.
 * Nothing is opened yet. SIGPIPE must be ignored when anything else is called.
 */
struct error *outputs_create(const struct output_options *options, struct outputs **out);
/* Lets the writer end, and waits for it unless it is held up. Accepts NULL. */
void outputs_destroy(struct outputs *o);

/* Begins the first or next trace file. */
struct error *outputs_open(struct outputs *o);
/* The path of the file that was opened last, which lives until the next is; NULL: there was none. */
const char *outputs_path(const struct outputs *o);
/* Ends the file that is open; closes it even after an error. */
struct error *outputs_close(struct outputs *o);
/* As write(2) and fsync(2) on the open file: -1 with errno, ECANCELED when interrupt.h gave up. */
ssize_t outputs_write(struct outputs *o, const void *data, size_t len_bytes);
int outputs_sync(struct outputs *o);
/* What the reader of a pipe has not taken, as of the last answer; `now` asks first. {0} for a file. */
struct output_backlog outputs_backlog(struct outputs *o, bool now);
/* Whether the trace goes, or went, into a pipe or a device. */
bool outputs_is_stream(const struct outputs *o);

/* Begins the archive, and returns where its bytes go. */
struct error *outputs_open_archive(struct outputs *o, struct archive_sink *out);

/* Replaces the file of figures by this text, whole. */
struct error *outputs_publish(struct outputs *o, const void *text, size_t len_bytes);

/* Whether the writer has gone, killed perhaps: nothing can be written any more. */
bool outputs_lost(const struct outputs *o);
/* The writer's CPU time so far. */
uint64_t outputs_cpu_ns(const struct outputs *o);

#endif
