/* SPDX-License-Identifier: Apache-2.0 */
/* The weights below were fitted to files that were made to cost much, so that a step is about a nanosecond for all. */
#include "symbolize/trace/file_limits.h"

#include <inttypes.h>
#include <stdio.h>

#include "formats/base/size_text.h"

enum { RECORD_WORK = 60, SAMPLE_WORK = 100, RAW_BYTES_PER_STEP = 2 };

/* The limits only grow, since more of the files is known with every block. */
static void allow(struct file_limits *l)
{
    uint64_t file = l->done_bytes + l->file_bytes;
    uint64_t most = l->asked_bytes;

    if (!most)
        most = file < FILE_LIMITS_MOST_BYTES / FILE_LIMITS_FACTOR ? FILE_LIMITS_FREE_BYTES + FILE_LIMITS_FACTOR * file
                                                                  : FILE_LIMITS_MOST_BYTES;
    if (!l->asked_bytes && most > FILE_LIMITS_MOST_BYTES)
        most = FILE_LIMITS_MOST_BYTES;
    if (most > l->limits.memory_max)
        l->limits.memory_max = most;
    /* Time has no ceiling of its own: it may be as long as the files are. */
    uint64_t by_size = FILE_LIMITS_WORK * (FILE_LIMITS_FREE_BYTES + FILE_LIMITS_FACTOR * file);
    uint64_t work = most > UINT64_MAX / FILE_LIMITS_WORK ? UINT64_MAX : FILE_LIMITS_WORK * most;
    work = work > by_size ? work : by_size;
    if (work > l->limits.work_max)
        l->limits.work_max = work;
}

void file_limits_init(struct file_limits *l, uint64_t asked_bytes)
{
    *l = (struct file_limits){.asked_bytes = asked_bytes};
    allow(l);
}

void file_limits_begin(struct file_limits *l)
{
    l->done_bytes = l->file_bytes = l->raw_bytes = 0;
    l->limits.work_done = 0;
}

struct error *file_limits_record(struct file_limits *l, const struct trace_record *rec,
                                 const struct trace_reader_stats *stats)
{
    uint64_t samples = rec->type == TRACE_samples ? rec->samples.count : 0;

    if (stats->file_bytes != l->file_bytes) {
        l->file_bytes = stats->file_bytes;
        allow(l);
    }
    uint64_t raw = stats->raw_bytes - l->raw_bytes;
    l->raw_bytes = stats->raw_bytes;
    return limits_work(&l->limits, RECORD_WORK + SAMPLE_WORK * samples + raw / RAW_BYTES_PER_STEP) ? NULL
                                                                                                  : error_no_memory();
}

void file_limits_end_file(struct file_limits *l, const struct trace_reader_stats *stats)
{
    l->done_bytes += stats->file_bytes;
    l->file_bytes = l->raw_bytes = 0;
}

struct error *file_limits_explain(const struct file_limits *l, struct error *err)
{
    struct size_text memory;
    char limit[128];

    if (!err || err->code != ERROR_NO_MEMORY || !l->limits.exceeded)
        return err;
    error_destroy(err);
    snprintf(limit, sizeof limit, l->limits.work_done > l->limits.work_max
                                      ? "work than goes with their limit of %s of memory"
                                      : "memory than their limit of %s",
             size_text(l->limits.memory_max, &memory));
    return error_create(ERROR_LIMIT,
                        "the traces need more %s; if you trust them, raise both limits with --max-memory=%" PRIu64 "M",
                        limit, (l->limits.memory_max >> 19) + 1);
}
