/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far the times of waits in a table of `top` may be off.
 *
 * Not each wait has a stack. Those of one call site (a thread, the kind of wait, the newest four functions of Python) are
 * recorded to the nanosecond, and so are those with a stack. The time of the others, O, is given in k payments D to stacks
 * of the site, in proportion to what these stand for (capture/trace/wait_sites.h). Which waits had a stack at all is chance:
 * a function that is on the stacks with a share p of the site's time has the variance
 *
 *     w^2 ((1 - p)^2 * sum of l^2 of the stacks with it + p^2 * sum of l^2 of the others) + p (1 - p) * sum of D^2 / k
 *
 * where l are the lengths of the n waits that had a stack, of the sum L, and each stands for w like it; the second term is
 * for the payment that is not shared out yet. If all had the same chance, w were O / L. It may have changed, above all by
 * *--max-cpu*: then few of the stacks stand for most of O, and the payments, of which each goes with one of them, show it:
 * w^2 is at least the sum of D^2 over that of l^2, and more where lengths differ much, as payments differ less, being sums
 * of many waits: times n * sum of l^2 / (2 L^2). Simulated, the true value was within twice the error so stated in 90 to
 * 100 of 100 cases; it is stated too small for a function of which only a few waits had a stack.
 *
 * Sites are independent of each other. A function on all stacks of a site has no error there.
 *
 * Two instructions on one line of Python are two sites; here they are one, which can only make the error larger.
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
    uint64_t site; /* equal for stacks of one call site */
    uint32_t thread, stack;
    double last_ns;           /* the last wait, of which further parts may come */
    double own, own_squares;  /* sums of l and l^2 */
    uint64_t own_count;
    double owed, owed_squares; /* sums of D and D^2 */
    uint64_t payments;         /* k */
};

/* Of the functions of one call site. */
struct top_error_weight {
    double sum, own_squares;
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
    uint32_t name_count; /* both have room for so many names */
    uint64_t serial;
    VEC(uint32_t) touched;
};

/* {.model, .limits, .by_stack.limits} is empty. */
void top_errors_deinit(struct top_errors *e);
/* Rows will have other names from now on. */
void top_errors_forget_names(struct top_errors *e);
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
