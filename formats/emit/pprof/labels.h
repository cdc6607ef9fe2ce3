/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of samples: whose they are.
 *
 *     process, thread, container     text: names
 *     pid, tid, cpu                  numbers
 *     asyncio_task, interpreter, gil text, with --labels
 *
 * A store such as Pyroscope makes a series of every set of texts, and drops numbers; so numbers that are as many as
 * processes and threads are no texts. Keys have no blanks, which stores refuse.
 */
#ifndef FORMATS_EMIT_PPROF_LABELS_H
#define FORMATS_EMIT_PPROF_LABELS_H

#include "formats/emit/pprof/samples.h"
#include "formats/emit/pprof/tables.h"

/* Appends the labels of an owner to `out`, as encoded fields of a Sample. False: out of memory. */
bool pprof_put_labels(const struct pprof_samples *samples, struct pprof_tables *tables, const struct pprof_owner *owner,
                      struct buf *out);

#endif
