/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of a profile's values. Each event has two: how many samples, and what they weigh. The values of the first event
 * are called as pprof's users know them, samples/count and, of a CPU clock, cpu/nanoseconds; those of another event are
 * called after it: page_faults_samples/count and page_faults/bytes. A row has values of one event, and 0 for the others.
 *
 * Profiles of different types cannot be added up; so parts of an output that has several events all have those of all.
 */
#ifndef FORMATS_EMIT_PPROF_TYPES_H
#define FORMATS_EMIT_PPROF_TYPES_H

#include "formats/base/vec.h"
#include "formats/emit/emit.h"
#include "formats/emit/pprof/samples.h"
#include "formats/emit/pprof/tables.h"

/* All strings. */
struct pprof_type {
    uint32_t samples, value, unit;
};

struct pprof_types {
    VEC(uint32_t) events;          /* of time first: those with samples; all if there are no samples */
    VEC(struct pprof_type) types;  /* likewise; at least one */
    VEC(uint32_t) places;          /* by event of the model: its index among these */
};

void pprof_types_deinit(struct pprof_types *t);
/* {0} before. */
struct error *pprof_types_init(struct pprof_types *t, const struct pprof_samples *samples, const struct emit_options *options,
                               struct pprof_tables *tables);
/* Writes the types, the default type and the period. */
struct error *pprof_types_write(const struct pprof_types *t, const struct emit_model *model, struct pprof_tables *tables,
                                struct gzip *out);
/* Appends a type to `out` as that field: strings are of the tables. */
void pprof_put_value_type(struct buf *out, uint32_t field, uint32_t name, uint32_t unit);

#endif
