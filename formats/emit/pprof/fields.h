/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the fields that are written, from profile.proto of github.com/google/pprof (b9395ee, 2026-07-09). */
#ifndef FORMATS_EMIT_PPROF_FIELDS_H
#define FORMATS_EMIT_PPROF_FIELDS_H

#include "formats/base/buf.h"
#include "formats/emit/gzip.h"

enum {
    /* Profile */
    PPROF_SAMPLE_TYPE = 1,
    PPROF_SAMPLE = 2,
    PPROF_MAPPING = 3,
    PPROF_LOCATION = 4,
    PPROF_FUNCTION = 5,
    PPROF_STRING = 6,
    PPROF_TIME_NANOS = 9,
    PPROF_DURATION_NANOS = 10,
    PPROF_PERIOD_TYPE = 11,
    PPROF_PERIOD = 12,
    PPROF_COMMENT = 13,
    PPROF_DEFAULT_SAMPLE_TYPE = 14,

    /* ValueType */
    PPROF_VALUE_TYPE = 1,
    PPROF_VALUE_UNIT = 2,

    /* Sample */
    PPROF_SAMPLE_LOCATIONS = 1, /* the innermost first */
    PPROF_SAMPLE_VALUES = 2,
    PPROF_SAMPLE_LABEL = 3,

    /* Label */
    PPROF_LABEL_KEY = 1,
    PPROF_LABEL_TEXT = 2,
    PPROF_LABEL_NUMBER = 3,
    PPROF_LABEL_UNIT = 4,

    /* Mapping, Location, Function: their ids */
    PPROF_ID = 1,

    /* Mapping */
    PPROF_MAPPING_ID = PPROF_ID,
    PPROF_MAPPING_START = 2,
    PPROF_MAPPING_LIMIT = 3,
    PPROF_MAPPING_OFFSET = 4,
    PPROF_MAPPING_FILENAME = 5,
    PPROF_MAPPING_BUILD_ID = 6,
    PPROF_MAPPING_HAS_FUNCTIONS = 7,
    PPROF_MAPPING_HAS_FILENAMES = 8,
    PPROF_MAPPING_HAS_LINES = 9,
    PPROF_MAPPING_HAS_INLINED = 10,

    /* Location */
    PPROF_LOCATION_MAPPING = 2,
    PPROF_LOCATION_ADDRESS = 3,
    PPROF_LOCATION_LINE = 4,

    /* Line */
    PPROF_LINE_FUNCTION = 1,
    PPROF_LINE_LINE = 2,
    PPROF_LINE_COLUMN = 3,

    /* Function */
    PPROF_FUNCTION_NAME = 2, /* 3, system_name, stays empty: see pprof.c */
    PPROF_FUNCTION_FILENAME = 4,
    PPROF_FUNCTION_START_LINE = 5,
};

/* Writes fields that were encoded. */
static inline struct error *pprof_write(struct gzip *out, const struct buf *fields)
{
    return fields->bad ? error_no_memory() : gzip_put(out, fields->data, fields->len_bytes);
}

#endif
