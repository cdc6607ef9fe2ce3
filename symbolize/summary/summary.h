/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums up what the traces hold, how complete it is, and what was lost: for `--format
 * summary`, and for --strict with any format.
 *
 * It gathers facts while the traces are read. At the end it takes the counts of stack
 * ends and the modules from the resolver.
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
/* `limits` is borrowed; NULL: none. */
struct error *summary_create(struct limits *limits, struct summary **out);
void summary_destroy(struct summary *s);

struct error *summary_begin_file(struct summary *s, const char *path);
/* Call after the record was loaded into the epoch. */
struct error *summary_record(struct summary *s, const struct epoch *e, const struct trace_record *rec);
/* A sample that passed the filters; `event` is the epoch's id. `shown` is NULL where nothing is resolved. */
struct error *summary_sample(struct summary *s, const struct epoch *e, uint32_t event,
                             const struct trace_sample *sample, const struct emit_sample *shown);
/* Call while the epoch still exists. */
struct error *summary_end_epoch(struct summary *s, const struct epoch *e);
struct error *summary_end_file(struct summary *s, const struct trace_reader *reader);
/* Adds samples that came too late to be put in order. */
void summary_late(struct summary *s, uint64_t count);

/* The verdict and the processes; `verbose`: with every figure. */
struct error *summary_print(struct summary *s, const struct resolver *r, bool verbose, FILE *out);
/* Were parts of a trace damaged, and passed over? */
bool summary_is_damaged(const struct summary *s);
/* Prints at most a few lines for standard error about damage and missing ends of files; nothing if there is none. */
void summary_print_trouble(const struct summary *s, FILE *out);

#endif
