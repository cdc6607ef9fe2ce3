/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tracepoint of the kernel: its number, and where in its record the field lies that is added up, as the file `format`
 * in tracefs says (Documentation/trace/events.rst).
 */
#ifndef CAPTURE_EVENT_TRACEPOINT_H
#define CAPTURE_EVENT_TRACEPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/err.h"

struct tracepoint {
    uint32_t id;            /* perf_event_attr.config, with PERF_TYPE_TRACEPOINT */
    uint32_t weight_offset; /* bytes from the start of the record, which is a program's context; 8 at least */
    uint32_t weight_size;   /* 1, 2, 4 or 8 bytes; 0: no field is added up, each hit counts 1 */
    bool weight_signed;
};

/* The longest record whose fields are taken: PERF_MAX_TRACE_SIZE of Linux 5.10. */
#define TRACEPOINT_RECORD_MAX 2048

/*
 * Finds the tracepoint `category`:`name` below the folder `tracefs` (tracefs_open()), and in its record the field
 * `weight`; NULL: none. An error says what there is instead: names that are near, or the fields that can be added up.
 */
struct error *tracepoint_find(int tracefs, const char *category, const char *name, const char *weight,
                              struct tracepoint *out);
/* The same from the text of a file `format`. The error does not say which file it was. */
struct error *tracepoint_parse(const char *text, size_t len, const char *weight, struct tracepoint *out);

/* Reads the names of all tracepoints, CATEGORY:NAME, a line each; malloc'd. */
struct error *tracepoint_list(int tracefs, char **names);
/*
 * Appends those names of such a list that are like `category`:`name`, 6 at most, with commas between them: the name in
 * other categories, names of the category that begin or differ by a little, and if there are none, any with the name in them.
 */
#define TRACEPOINT_NEAR_MAX 6
void tracepoint_put_near(const char *names, const char *category, const char *name, struct buf *out);

#endif
