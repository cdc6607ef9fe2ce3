/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records to bytes and back, driven by the table of records.def. For formats/trace, its
 * tests, and who keeps a record's payload by itself (capture/trace/codes.c).
 *
 * Writer and reader check the same rules through this file, so what the one writes
 * the other accepts. A rule that is broken gives false and says in `fault` which.
 */
#ifndef FORMATS_TRACE_CODEC_H
#define FORMATS_TRACE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/bytes.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"

/* How many ids of each kind an epoch has defined so far: the ids 1 to n. */
struct trace_ids {
    uint32_t count[TRACE_KIND_COUNT];
};

struct trace_fault {
    char text[sizeof((struct trace_damage *)0)->reason];
};

/* Room for the lists of the record decoded last, which VEC_DEINIT frees. */
struct trace_scratch {
    VEC(uint64_t) values;
    uint32_t newer_samples; /* of that record: samples with flags that this version does not know */
};

/* Appends the payload of `record` (its struct). The DEF and DEFS fields are not looked at. */
bool trace_encode(struct buf *out, const struct trace_record_type *type, const void *record,
                  const struct trace_ids *ids, struct trace_fault *fault);
/*
 * Fills in `record` from a payload. BYTES point into the payload, lists into `scratch`. DEF and DEFS fields
 * get the ids that trace_define() will hand out. SAMPLES data and ids in lists are checked as well.
 */
bool trace_decode(struct bytes payload, const struct trace_record_type *type, const struct trace_ids *ids,
                  struct trace_scratch *scratch, void *record, struct trace_fault *fault);
/* Takes the ids that a record defines, and sets its DEF and DEFS fields. */
bool trace_define(struct trace_ids *ids, const struct trace_record_type *type, void *record, struct trace_fault *fault);

/* Whether a sample may be written: its flags are known, and its ids defined. */
bool trace_sample_check(const struct trace_sample *s, const struct trace_ids *ids, struct trace_fault *fault);
/* `last_time_ns` is the time of the sample before, or the record's own. The sample passed trace_sample_check(). */
void trace_sample_encode(struct buf *out, const struct trace_sample *s, uint64_t last_time_ns);

#endif
