/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a profile: pprof shows the first mapping as its file, with the build ID. */
#ifndef FORMATS_EMIT_PPROF_PROGRAM_H
#define FORMATS_EMIT_PPROF_PROGRAM_H

#include "formats/emit/pprof/samples.h"
#include "formats/emit/pprof/tables.h"

/*
 * Adds the mapping of the interpreter that most samples have Python frames of. Adds nothing if there is none. To be
 * called before any other mapping is added.
 */
struct error *pprof_add_program(const struct pprof_samples *samples, struct pprof_tables *tables);

#endif
