/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source files of Python code, for SOURCE records: which names of which root and user have been met in the epoch, and
 * what stat said of them. Files are looked at by a worker thread of its own, so that one that does not answer delays nothing
 * else; answers are written when they come. Quotas limit what a process may ask for.
 */
#ifndef CAPTURE_TRACE_SOURCE_TABLE_H
#define CAPTURE_TRACE_SOURCE_TABLE_H

#include <stdint.h>

#include "capture/host/quotas.h"
#include "capture/trace/source_look.h"
#include "formats/base/err.h"
#include "formats/trace/trace.h"

struct source_table;
/* Starts the worker. Call before the process is confined. */
struct error *source_table_create(struct source_table **out);
void source_table_destroy(struct source_table *s);

/* The process that ran code of a file. */
struct source_owner {
    struct source_asker asker;
    struct quotas *quotas;
    uint32_t slot;
    uint64_t time_ns;
    uint32_t process; /* id of its record in this epoch */
};
/*
 * Asks for a file, unless that was done in this epoch for the same root and user. `name` is that of the code object, as
 * UTF-8. Names that cannot be those of files are passed over.
 */
struct error *source_table_want(struct source_table *s, const struct source_owner *owner, const char *name, size_t len_bytes);
/* Sends what was asked for to the worker, and writes what it has answered. Call when a stretch of samples is done. */
void source_table_serve(struct source_table *s, struct trace_writer *w);
/* Gives up a look that takes too long. Call about once a second. */
void source_table_tend(struct source_table *s, uint64_t time_ns);
/*
 * Ends the epoch: waits for answers until that time (CLOCK_MONOTONIC), and writes that the others are not known. `again`:
 * looks a second time at the files that are known, and writes what has changed.
 */
struct error *source_table_end_epoch(struct source_table *s, struct trace_writer *w, bool again, uint64_t until_ns);

#endif
