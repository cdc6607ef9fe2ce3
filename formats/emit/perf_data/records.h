/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a perf.data file, as the kernel and `perf record` write them (include/uapi/linux/perf_event.h, and
 * tools/lib/perf/include/perf/event.h for those of perf itself). Each has a type, its length in 16 bits, and its fields;
 * each but SAMPLE and FINISHED_ROUND ends in the fields that say when, where and of which event it is.
 *
 * All functions write one record and fail only when memory ran out or the output cannot be written. Times must not
 * decrease: readers sort records only within two rounds.
 */
#ifndef FORMATS_EMIT_PERF_DATA_RECORDS_H
#define FORMATS_EMIT_PERF_DATA_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"

/* What every sample holds, and the end of other records: bits of enum perf_event_sample_format. */
#define RECORDS_SAMPLE_TYPE UINT64_C(0x2101a7) /* IP TID TIME CALLCHAIN CPU PERIOD IDENTIFIER CGROUP */

enum {
    RECORDS_CHAIN_MAX = 8180, /* entries of a call chain, so that the record's length fits into 16 bits */
    RECORDS_NAME_MAX = 4000,  /* bytes of a path or name, likewise; readers take 4,095 */
};

/* In a call chain: the entries behind it, up to the next such mark, are addresses in the kernel or in user space. */
#define RECORDS_IN_KERNEL ((uint64_t)-128)
#define RECORDS_IN_USER ((uint64_t)-512)

/* {.out = …}; the owner frees it with buf_deinit(&r->record). */
struct records {
    FILE *out; /* borrowed */
    uint64_t len_bytes; /* written so far */
    struct buf record;  /* scratch */
};

/* Whom and what a record is about. */
struct record_stamp {
    uint32_t pid, tid;
    uint64_t time_ns;
    uint32_t cpu;
    uint64_t id; /* of the event, as header_write() gives it */
};

struct record_sample {
    struct record_stamp stamp;
    bool in_kernel; /* where the innermost frame is */
    uint64_t period;
    const uint64_t *chain; /* innermost first, with RECORDS_IN_… marks */
    uint32_t chain_len;    /* RECORDS_CHAIN_MAX at most */
    uint64_t cgroup;       /* 0: unknown */
};

/* Executable memory of a process that comes from a file. */
struct record_mapping {
    uint64_t start, len_bytes, file_offset;
    const char *path; /* cut at RECORDS_NAME_MAX, as names below */
    const uint8_t *build_id;
    uint32_t build_id_len; /* 0 or more than 20 bytes: the record has none */
};

struct error *records_sample(struct records *r, const struct record_sample *sample);
struct error *records_mapping(struct records *r, const struct record_stamp *stamp, const struct record_mapping *mapping);
/* The kernel's code, which must come before the first sample in it. `path` is that of its names, without "_text". */
struct error *records_kernel(struct records *r, const struct record_stamp *stamp, uint64_t start, uint64_t end,
                             const char *path);
/* The name of thread stamp->tid. `is_exec`: the process runs another program from here on. */
struct error *records_comm(struct records *r, const struct record_stamp *stamp, const char *name, bool is_exec);
struct error *records_cgroup(struct records *r, const struct record_stamp *stamp, uint64_t number, const char *path);
/* Samples of an event that were lost. */
struct error *records_lost(struct records *r, const struct record_stamp *stamp, uint64_t count);
/* Lets readers process what they have: later records are not older than what came before the round before. */
struct error *records_end_round(struct records *r);

#endif
