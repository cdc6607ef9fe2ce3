/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process beside (`pycap-tables`) that makes the chunks in which unwind tables lie (bpf/sampler_state.h). To make a map takes
 * CAP_BPF, which the process that records gives up, since it reads what others have made. This one reads nobody: it is told
 * "one more" over a socket, and answers with the map's descriptor, so often and no more.
 */
#ifndef CAPTURE_SAMPLER_TABLE_MAKER_H
#define CAPTURE_SAMPLER_TABLE_MAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"

struct table_maker;
/* Forks it, while this process has one thread. `max`: so many chunks it makes at most. `confine`: it gives up what it does not need. */
struct error *table_maker_create(uint32_t max, bool confine, struct table_maker **out);
/* Ends it. Accepts NULL. */
void table_maker_destroy(struct table_maker *m);
/* The descriptor of a new chunk; -1: the kernel has no memory for it, or the process is gone. */
int table_maker_make(struct table_maker *m);
/* How many chunks it makes at most. */
uint32_t table_maker_max(const struct table_maker *m);

#endif
