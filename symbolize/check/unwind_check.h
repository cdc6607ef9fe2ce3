/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks whether the stacks that were unwound in the kernel are right. Traces of `pycap record --unwind both`
 * hold a stack and a snapshot of the same sample. The snapshot is unwound again by each
 * witness (libunwind, libdwfl, and the kernel's own unwinder built for this host), and the
 * results are compared address by address: module, offset in its file, and whether it is a
 * return address.
 *
 * A witness sees no more than the snapshot holds; where that was cut, the rest of the stack
 * is not compared and the sample counts as cut. Where two stacks differ, the cause is sought in
 * the last frame that they share: its unwind rules were read differently.
 */
#ifndef SYMBOLIZE_CHECK_UNWIND_CHECK_H
#define SYMBOLIZE_CHECK_UNWIND_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/vec.h"
#include "formats/trace/trace.h"
#include "symbolize/trace/epoch.h"
#include "symbolize/stack/modcache.h"

enum check_witness { CHECK_LIBUNWIND, CHECK_LIBDWFL, CHECK_HOST, CHECK_WITNESSES };
enum check_verdict {
    CHECK_SAME,
    CHECK_CUT,     /* the same up to the end of the snapshot */
    CHECK_PENDING, /* the same up to a mapping or table that the sampler did not know yet */
    CHECK_DIFFERS,
    CHECK_VERDICTS,
};

enum { CHECK_EXAMPLES_MAX = 3, CHECK_UNKNOWN_LOSS = LOSS_LIMIT };

/* Samples whose stacks differ, or both stop early, with the same module and cause. */
struct check_row {
    enum check_verdict verdict;
    const char *module, *cause;
    uint64_t sample_counts[CHECK_WITNESSES];
    enum check_witness first; /* the witness that found it first; the examples are its */
    const char *examples[CHECK_EXAMPLES_MAX];
};

struct check_report {
    uint64_t sample_count, compared_count; /* all samples; those with a stack and a snapshot */
    uint64_t verdicts[CHECK_WITNESSES][CHECK_VERDICTS];
    uint64_t reached[CHECK_WITNESSES], kernel_reached; /* the thread's start */
    uint64_t kernel_ends[CHECK_UNKNOWN_LOSS + 1];      /* by reason */
    uint64_t join_count, join_complete_count;          /* samples with Python runs; those with all runs joined */
    uint64_t join_reasons[CHECK_UNKNOWN_LOSS + 1];     /* of the outermost run without a frame */
    VEC(struct check_row) rows;
};

struct unwind_check;
/* `modules` is borrowed. */
struct error *unwind_check_create(struct modcache *modules, struct unwind_check **out);
void unwind_check_destroy(struct unwind_check *c);
/* `since_ns`: time since the start of the file, shown with examples. */
struct error *unwind_check_sample(struct unwind_check *c, struct epoch *e, const struct trace_sample *sample,
                                  uint64_t since_ns);
/* Before the epoch is forgotten. */
void unwind_check_end_epoch(struct unwind_check *c);
const struct check_report *unwind_check_report(const struct unwind_check *c);
/* True if no witness differs in any sample. */
bool unwind_check_agrees(const struct unwind_check *c);

/* Prints the report. Fails with ERROR_UNSUPPORTED when there was nothing to compare. */
struct error *unwind_check_print(const struct check_report *r, FILE *out);
const char *unwind_check_witness_name(enum check_witness witness);

#endif
