/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows that are tested, each with its measure x and the variance v that sampling gives that, by run (moderated.h).
 *
 *     a part k of a whole of m samples    x = ln((k + D/2) / (m - k + D/2))    v = D (1/(k + D/2) + 1/(m - k + D/2))
 *     a time of k samples of weight h     x = ln((k + D/2) h / W)              v = D / (k + D/2)
 *
 * with D, the design effect (run_cell.dispersion, the mean of all runs): D samples say as much as one that is independent of
 * the others would; and W, the run's work or its size factor (size_factors.h). (The variance of a log odds, with half a sample
 * added so that 0 has a logarithm: Haldane, Annals of Human Genetics 20, 1956.)
 *
 * Parts are a node of its parent, the own time of a node of the node, a line of its function's own time: if only the part
 * grows by g, x grows by ln(1 + g) whatever its share, and a run that did more of the whole says nothing. The parent of a node
 * is its nearest caller that does other things as well: of a chain of calls that do nothing else only the innermost is a row.
 * Times are those of functions and modules.
 */
#ifndef FORMATS_COMPARE_ROW_H
#define FORMATS_COMPARE_ROW_H

#include "formats/base/arena.h"
#include "formats/compare/call_tree.h"
#include "formats/compare/match_lines.h"
#include "formats/compare/measures.h"
#include "formats/stats/moderated.h"

/*
 * The least variance of a row, as a part of what sampling explains (moderated_table.least). Programs that do the same work each
 * time vary less than independent samples would, as they are sampled at regular distances of CPU time: so it is none.
 */
#define ROW_VARIANCE_LEAST 0.0

struct test_row {
    struct compare_row shown;
    uint32_t subject;        /* RUN_SET_NONE: of none */
    uint32_t call_node;      /* CALL_NODE_NONE: of none */
    uint32_t within;         /* the call node whose total is the whole; CALL_NODE_NONE: it is no node's */
    double *part, *whole;    /* samples by run; of a time the whole is the run */
    double dispersion;       /* 1 at least */
    bool is_part;            /* of its whole; else a time */
    bool one_sided;          /* one side has none at all: tested against 0 */
    struct estimate measured; /* on the log scale; one-sided: of the share */
    struct estimate estimate; /* the same, without the causes beside it that were found (peel.h) */
    double p;                /* of what it is answered by; shown.p is as measured */
    double variance;         /* of a run's measure, moderated; 0: not known */
};

/* Kinds whose rows are moderated together. */
enum row_family {
    FAMILY_NODES,
    FAMILY_FUNCTIONS,
    FAMILY_TOTALS,
    FAMILY_LINES,
    FAMILY_MODULES,
    FAMILIES,
    FAMILY_NONE = FAMILIES, /* the total of all */
};

struct test_rows {
    const struct sides *sides;
    const struct match *match;
    const struct compare_options *options;
    bool by_work;
    struct call_tree tree;
    struct line_match lines;
    struct measures nodes, functions, line_measures, modules;
    double *factors;    /* by run: work, else size factor */
    double *all;        /* by run: samples of the event */
    struct arena arena; /* of parts and wholes */
    VEC(struct test_row) rows;
    struct moderated_fit fits[FAMILIES];
};

/* Is the row answered by another one? */
static inline bool row_is_explained(const struct test_row *row)
{
    return row->shown.because != COMPARE_NO_ROW || row->shown.answer >= COMPARE_GAVE_WAY;
}
enum row_family row_family_of(enum compare_kind kind);
/* The row's x and v, by run. */
void row_measure(const struct test_rows *r, const struct test_row *row, double *x, double *v);
/* compare_options.least_samples, or what it is by default. */
double row_least_samples(const struct test_rows *r);
/* Can the part be told from its whole? Of each there are enough samples, by what was asked for. */
bool row_is_enough(const struct test_rows *r, const struct test_row *row);
/* The mean of numbers by run, of all runs or of one side. */
double row_mean(const struct test_rows *r, const double *by_run);
double row_side_mean(const struct test_rows *r, enum side side, const double *by_run);

#endif
