/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile of what was not recorded, for stores of profiles: they would show what is left of a busy host as if it were all.
 * Its values are lost/count, samples that are missing, and incomplete/count, parts that are missing of samples that are there,
 * such as outer frames: who asks how many samples were lost must not get these in the sum. A stack is the name of a loss, called by the event whose samples it concerns, if that is one.
 */
#ifndef FORMATS_EMIT_PPROF_LOSSES_H
#define FORMATS_EMIT_PPROF_LOSSES_H

#include "formats/emit/emit.h"

/*
 * Writes it gzipped, and to *raw_bytes how long it is unpacked. `part`: when that was. The caller checks and closes `out`.
 * Memory counts in the limits, which may be NULL.
 */
struct error *pprof_losses_write(const struct emit_part *part, const struct emit_loss *losses, uint32_t count, struct limits *limits,
                                 FILE *out, uint64_t *raw_bytes);

#endif
