/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the traces hold, how complete it is, and what was lost: `--format summary`, and
 * the ground for --strict whatever the format.
 *
 * It listens in while traces are read; the stacks' ends and the modules it takes from
 * the resolver when all is done.
 */
#ifndef SYMBOLIZE_SUMMARY_SUMMARY_H
#define SYMBOLIZE_SUMMARY_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/trace/trace.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/stack/resolve.h"

struct summary;
struct error *summary_create(struct summary **out);
void summary_destroy(struct summary *s);

struct error *summary_begin_file(struct summary *s, const char *path);
/* After the record was loaded into the epoch. */
struct error *summary_record(struct summary *s, const struct epoch *e, const struct trace_record *rec);
/* A sample that passed the filters; `event` is the epoch's id. */
struct error *summary_sample(struct summary *s, const struct epoch *e, uint32_t event,
                             const struct trace_sample *sample);
/* Before the epoch is forgotten. */
struct error *summary_end_epoch(struct summary *s, const struct epoch *e);
struct error *summary_end_file(struct summary *s, const struct trace_reader *reader);
/* Samples that the emitter got later than their order allows. */
void summary_late(struct summary *s, uint64_t count);

/* Nothing was lost, damaged or left without a name, as far as the samples that passed the filters are concerned. */
bool summary_is_complete(const struct summary *s, const struct resolver *r);
struct error *summary_print(const struct summary *s, const struct resolver *r, FILE *out);
/* At most a few lines for standard error about what is amiss with the files; nothing when all is well. */
void summary_print_trouble(const struct summary *s, FILE *out);

#endif
