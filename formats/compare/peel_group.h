/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of one whole, while causes are taken out of them (peel.h). */
#ifndef FORMATS_COMPARE_PEEL_GROUP_H
#define FORMATS_COMPARE_PEEL_GROUP_H

#include "formats/compare/row.h"

/* What was taken out of a row so far. */
struct peel_row {
    double *inside;  /* samples by run, of the part and so of the whole */
    double *outside; /* of the whole only */
    uint32_t below, beside; /* the surest cause inside, and outside; COMPARE_NO_ROW */
    double difference, p;   /* of the last test, on the log scale */
    bool changed;           /* since then */
};

struct peel_group {
    uint64_t key;
    VEC(uint32_t) members; /* rows */
    VEC(uint32_t) open;    /* of them: discoveries without an answer */
};
#define PEEL_NO_GROUP UINT32_MAX

struct peeling {
    struct test_rows *rows;
    double p_most;           /* the largest p of a discovery */
    struct peel_row *states; /* by row */
    uint32_t *group_of;      /* by call node: the group of which it is the whole; PEEL_NO_GROUP */
    VEC(struct peel_group) groups;
    uint32_t *caller_of;     /* by call node: the last cause of which it was found to be a caller, as `causes` counts */
    uint32_t causes;
    struct arena arena;
    double *scratch;         /* of five times the runs */
};

/* Fills in all but the groups; `rows` and `p_most` are set. False: out of memory. Deinit it also then. */
bool peeling_init(struct peeling *p);
void peeling_deinit(struct peeling *p);
/* Tests a row without what was taken out of it. */
struct error *peel_row_test(struct peeling *p, uint32_t row);
/* The cause among the open rows. */
struct error *peel_group_choose(struct peeling *p, const struct peel_group *g, uint32_t *cause);
/* Takes the time of `cause` out of the group's rows: out of the part of those whose nodes are callers, else out of the whole. */
struct error *peel_group_take_out(struct peeling *p, const struct peel_group *g, uint32_t cause);
/* Shows the estimates of rows beside a cause as they are without it. */
struct error *peel_rows_show(struct peeling *p);

#endif
