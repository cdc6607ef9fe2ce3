/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes records to bytes and decodes them, driven by the table of records.def. For
 * formats/trace, its tests, and code that stores encoded records (capture/trace/codes.c).
 *
 * Writer and reader check the same rules through this file, so the reader accepts what
 * the writer writes. A function that finds a broken rule returns false and says in
 * `fault` which rule it is.
 */
#ifndef FORMATS_TRACE_CODEC_H
#define FORMATS_TRACE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/bytes.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"

/* How many ids of each kind an epoch has defined so far. They are 1 to n. */
struct trace_ids {
    uint32_t count[TRACE_KIND_COUNT];
};

struct trace_fault {
    char text[sizeof((struct trace_damage *)0)->reason];
};

/* Holds the lists of the record that was decoded last, and its samples. Free both with VEC_DEINIT. */
struct trace_scratch {
    VEC(uint64_t) values;
    VEC(struct trace_sample) samples; /* with value 0 where there is none; all of the record, or none if they are many */
    uint32_t newer_samples; /* samples in that record with flags that this version does not know */
};

/* Appends the payload of `record` (a struct trace_NAME). Ignores DEF and DEFS fields. */
bool trace_encode(struct buf *out, const struct trace_record_type *type, const void *record,
                  const struct trace_ids *ids, struct trace_fault *fault);
/*
 * Decodes a payload into `record`. BYTES point into the payload, lists into `scratch`. DEF and DEFS fields
 * get the ids that trace_define() will assign. SAMPLES data and ids in lists are checked too.
 */
bool trace_decode(struct bytes payload, const struct trace_record_type *type, const struct trace_ids *ids,
                  struct trace_scratch *scratch, void *record, struct trace_fault *fault);
/* Assigns the ids that a record defines and sets its DEF and DEFS fields. */
bool trace_define(struct trace_ids *ids, const struct trace_record_type *type, void *record, struct trace_fault *fault);

/* True if a sample may be written: its flags are known and its ids are defined. */
bool trace_sample_check(const struct trace_sample *s, const struct trace_ids *ids, struct trace_fault *fault);
/*
 * Appends a sample, which must have passed trace_sample_check(). `last_time_ns` is the time of the previous sample; for
 * the first sample, that of the record.
 */
void trace_sample_encode(struct buf *out, const struct trace_sample *s, uint64_t last_time_ns);

#endif
