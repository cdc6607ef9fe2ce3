/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory and work reading traces may take: a part for free, and more with each byte that was read. No trace of
 * an ordinary program comes near; a trace that was made to exhaust its reader ends as an error.
 */
#ifndef SYMBOLIZE_TRACE_FILE_LIMITS_H
#define SYMBOLIZE_TRACE_FILE_LIMITS_H

#include "formats/base/err.h"
#include "formats/base/limits.h"
#include "formats/trace/trace.h"

/* Bytes of memory: for free, for each byte of the files, and at most. Work is counted in steps for each byte of memory. */
#define FILE_LIMITS_FREE_BYTES (UINT64_C(96) << 20)
#define FILE_LIMITS_FACTOR 112
#define FILE_LIMITS_MOST_BYTES (UINT64_C(8) << 30)
#define FILE_LIMITS_WORK 16

struct file_limits {
    struct limits limits;
    uint64_t asked_bytes; /* --max-memory; 0: by the size of the files */
    uint64_t done_bytes, file_bytes; /* of the files that were read, and of the one that is being read */
    uint64_t raw_bytes; /* of the latter: what its blocks unpacked to */
};

/* Call before anything is counted. `asked_bytes`: memory, whatever the files' size; 0: by their size. */
void file_limits_init(struct file_limits *l, uint64_t asked_bytes);
/* Call when the files are read from the start, again or for the first time. */
void file_limits_begin(struct file_limits *l);
/* Counts a record that was read, and its samples; the error says that the work is more than the limit. */
struct error *file_limits_record(struct file_limits *l, const struct trace_record *rec,
                                 const struct trace_reader_stats *stats);
void file_limits_end_file(struct file_limits *l, const struct trace_reader_stats *stats);
/* Makes an error of one that a limit caused; returns any other as it is. */
struct error *file_limits_explain(const struct file_limits *l, struct error *err);

#endif
