/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the times of waits in a table of `top` may be off.
 *
 * Not each wait has a stack. Those of one place (a thread, the kind of wait, a line of Python) are recorded to the
 * nanosecond, and so are those with a stack. The time of the others, O, is given in n payments D to stacks of the place,
 * each of them drawn from the last ones with a chance in proportion to its own length l (capture/trace/wait_sites.h). Of a
 * function that is on the stacks with a share p of the place's time two things are drawn: which stack gets a payment, with
 * the variance p (1 - p) * sum of D^2; and which waits had a stack at all, with p (1 - p) * (O / sum of l)^2 * sum of l^2.
 * Places are independent of each other. A function on all stacks of a place, such as the one that waits, has no error there.
 *
 * Two instructions on one line of Python are two places; here they are one, which can only make the error larger.
 */
#ifndef FORMATS_EMIT_TOP_ERRORS_H
#define FORMATS_EMIT_TOP_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/limits.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

/* The waits of a thread with one stack. */
struct top_error_stack {
    uint64_t place; /* equal for stacks of one place */
    uint32_t thread, stack;
    double last_ns;           /* the last wait, of which further parts may come */
    double own, own_squares;  /* sums of l and l^2 */
    double owed, owed_squares; /* sums of D and D^2 */
};

/* Of the functions of one place. */
struct top_error_weight {
    double sum;
    uint64_t serial; /* of the stack that was added last */
};

struct top_errors {
    const struct emit_model *model; /* borrowed, like the limits */
    struct limits *limits;
    uint32_t event; /* that of waits; of a trace with several the first */
    VEC(struct top_error_stack) stacks;
    struct map by_stack; /* thread << 32 | stack -> index */
    bool sorted, any;    /* any: something was drawn */
    double *variances;   /* by the name of a row, of one table at a time; NULL: none */
    struct top_error_weight *weights; /* scratch, likewise */
    uint64_t serial;
    VEC(uint32_t) touched;
};

/* {.model, .limits, .by_stack.limits} is empty. */
void top_errors_deinit(struct top_errors *e);
/* Notes a sample; does nothing with those that are no waits. False: out of memory. */
bool top_errors_add(struct top_errors *e, const struct emit_sample *sample);
/*
 * Works out `variances` of a table, after the last sample: of the threads of `owner`, a process or thread as `merge` says.
 * `ids` are the rows' names by frame, below `count`.
 */
struct error *top_errors_table(struct top_errors *e, enum emit_merge merge, uint32_t owner, const uint32_t *ids, uint32_t count);
/* The standard error of a row's total, in ns; 0: it is exact. */
uint64_t top_errors_of(const struct top_errors *e, uint32_t name);

#endif
