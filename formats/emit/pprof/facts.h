/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a profile was recorded, and the comments that say how, what the filters left, and what was lost. `pprof -comments`
 * shows them; stores of profiles drop them.
 */
#ifndef FORMATS_EMIT_PPROF_FACTS_H
#define FORMATS_EMIT_PPROF_FACTS_H

#include "formats/emit/emit.h"
#include "formats/emit/pprof/samples.h"
#include "formats/emit/pprof/tables.h"

/* After the last sample. */
struct error *pprof_facts_write(const struct pprof_samples *samples, const struct emit_options *options,
                                struct pprof_tables *tables, struct gzip *out);

#endif
