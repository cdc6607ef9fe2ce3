/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What surrounds the records in a perf.data file (tools/perf/Documentation/perf.data-file-format.txt):
 *
 *     header            where the parts are, and which features the file has
 *     records
 *     features          facts about the recording: offset and size of each, then the contents
 *     ids, attributes   the events: what was sampled, and how
 *
 * All but the records is known only after the last sample, so the header is written last.
 */
#ifndef FORMATS_EMIT_PERF_DATA_HEADER_H
#define FORMATS_EMIT_PERF_DATA_HEADER_H

#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/emit/emit.h"
#include "formats/emit/perf_data/addresses.h"
#include "formats/emit/perf_data/name_files.h"

/* The id of an event of the model, for stamps of records. */
static inline uint64_t header_event_id(uint32_t event)
{
    return (uint64_t)event + 1;
}

struct header_facts {
    const struct emit_model *model;
    const struct addresses *addresses; /* their binaries have build IDs */
    const struct kernel_names *kernel;
    const struct emit_files *files;
    uint64_t records_len_bytes;
    uint64_t first_ns, last_ns; /* of the samples */
    uint32_t cpu_max;           /* the highest that a sample has */
};

/* Leaves room for the header; records follow. */
struct error *header_reserve(FILE *out);
/* Writes what is behind the records, where `out` stands, and then the header at the file's start. */
struct error *header_write(FILE *out, const struct header_facts *facts);

#endif
