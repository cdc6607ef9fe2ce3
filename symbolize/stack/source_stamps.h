/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers what the traces say about the source files of Python code (SOURCE) for emitters: struct emit_source_stamp. All
 * records of one name have to agree, of whichever process and file they are. If one says that the file is not known, or
 * was modified after its process began, so that older code may run than the file has, the name has no stamp.
 */
#ifndef SYMBOLIZE_STACK_SOURCE_STAMPS_H
#define SYMBOLIZE_STACK_SOURCE_STAMPS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/trace/trace.h"
#include "symbolize/stack/model.h"
#include "symbolize/trace/epoch.h"

/* Begin with source_stamps_init(). */
struct source_stamps {
    struct model *model;
    uint64_t boot_realtime_ns; /* when the newest host was booted, ns since 1970; 0 when unknown */
    VEC(struct emit_source_stamp) list;
    VEC(uint32_t) texts; /* beside `list`: the number of the name */
    struct map places;   /* number of a name -> index in `list`, or that it is not known */
};

/* The model is borrowed; its view points to the stamps. */
void source_stamps_init(struct source_stamps *s, struct model *model);
void source_stamps_deinit(struct source_stamps *s);
/* Takes a record that was loaded into the epoch. False when memory ran out. */
bool source_stamps_record(struct source_stamps *s, const struct epoch *e, const struct trace_record *rec);

#endif
