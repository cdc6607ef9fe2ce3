/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of each thread went, exactly, and beside it what the samples of its waits add up to. */
#ifndef SYMBOLIZE_SUMMARY_THREAD_WAITS_H
#define SYMBOLIZE_SUMMARY_THREAD_WAITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/base/map.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/summary/summary.h"

/* "on-CPU", "lock", ...; "" for a kind that this version does not know. */
const char *thread_waits_name(enum emit_wait wait);
/* Adds up the samples of waits, by thread and kind. The caller deinits *out, also after an error. */
struct error *thread_waits_sum(const struct summary *s, const struct emit_model *m, struct map *out);
/* That of a row, in ns; of time on a CPU, which no sample of a wait has: 0. */
uint64_t thread_waits_sampled(const struct map *sums, const struct emit_exact_time *row);
/* Prints a line for each thread, `all` of them or those that waited longest; nothing where no waits were recorded. */
struct error *thread_waits_print(const struct summary *s, const struct resolver *r, bool all, FILE *out);

#endif
