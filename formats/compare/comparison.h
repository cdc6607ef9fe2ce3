/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two sets of runs. The unit is the run, never the sample: runs of one program differ by several times what
 * sampling alone explains. What is tested, how, and where that comes from: formats/stats/moderated.h.
 *
 * Each row (a node of calls, a function, a line, a module, the total) gets one of three answers: slower or faster, or
 * "cannot tell", with the number of runs that would tell. One correction for false discoveries is made over all rows of a
 * comparison but the total, which is one test of its own.
 */
#ifndef FORMATS_COMPARE_COMPARISON_H
#define FORMATS_COMPARE_COMPARISON_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/event_value.h"
#include "formats/base/vec.h"
#include "formats/compare/run_set.h"

enum compare_kind {
    COMPARE_TOTAL,
    COMPARE_NODE,           /* a function below its callers: its share of its parent's time */
    COMPARE_NODE_SELF,      /* the own time of a node that calls others: its share of the node's time */
    COMPARE_FUNCTION_SELF,  /* per unit of work; without: per size of the run, see size factors */
    COMPARE_FUNCTION_TOTAL,
    COMPARE_LINE,           /* of one function: as a share of its own time */
    COMPARE_MODULE,         /* the own time of all functions of a module */
    COMPARE_KINDS,
};

enum compare_answer {
    COMPARE_CANNOT_TELL,
    COMPARE_SLOWER, /* surely more: of events that are no time, "more" */
    COMPARE_FASTER,
    COMPARE_GAVE_WAY, /* its share only moved because a sibling's time did: `because` */
    COMPARE_OF_CALLERS, /* its time moved, but its share of each caller did not: they call it more, or less, or took longer */
    COMPARE_OF_CALLEES, /* its time moved with that of a node below it, which is the finding: `because` */
};

/* Which functions are the same in both sets. */
enum compare_match {
    COMPARE_SAME,
    COMPARE_MOVED,    /* to another file, folder or line; `code` says whether it is the same */
    COMPARE_RENAMED,  /* guessed: the same code under a new name, the old name gone, and no other candidate */
    COMPARE_NEW,      /* in none of the old runs */
    COMPARE_VANISHED, /* in none of the new runs */
};

enum compare_code {
    COMPARE_CODE_UNKNOWN,
    COMPARE_CODE_EQUAL,
    COMPARE_CODE_CHANGED,
};

#define COMPARE_NO_ROW UINT32_MAX

/*
 * A row. Findings are the rows whose answer is slower or faster and that have no `because`. One change is seen in many rows (a
 * node, its function, its file): the others are told by `because`.
 *
 * Numbers of functions, nodes, lines and texts are those of comparison.set.
 */
struct compare_row {
    enum compare_kind kind;
    enum compare_match match;
    enum compare_code code;       /* "its code changed" is the best hint at a cause */
    enum compare_answer answer;   /* after the correction */
    uint32_t function;            /* RUN_SET_NONE: of a total, a module */
    uint32_t node, line, module;  /* those that the kind has; else RUN_SET_NONE */
    uint32_t old_function;        /* of one that was renamed or moved, as it was; else RUN_SET_NONE */
    uint32_t within;              /* node: the one whose time the share is of, the nearest caller that does other things as well */
    uint32_t because;             /* the row that it gave way to, or under which it is told; COMPARE_NO_ROW: none */
    double old_value, new_value;  /* mean of the runs, in the unit of the event, per unit of work where that is known */
    double old_share, new_share;  /* mean share: of its parent (node), its node or function (node_self, line), else of all */
    double old_samples, new_samples; /* mean of the runs */
    /*
     * Of its time, all else alike: 0.10 for 10 % more; of what is new or vanished its share, below 0 if it vanished. Of a part
     * whose sibling is a finding: without that. No figure is ever a NaN or infinite.
     */
    double change;
    double low, high;             /* its 90 % interval; 0 if not tested */
    double p, q;                  /* two-sided, as measured; q after the correction: below alpha only if the row has an answer */
    double df, error;             /* of the estimate, on the log scale; of what is new or vanished: of the share */
    double runs_needed;           /* runs a side that would tell a change of this size, or of the rule's; 0: not known */
    bool tested;                  /* false: too few runs, a total that cannot be compared, a part that is alone without a finding */
};

/* Is the row surely changed, and not by another one alone? */
static inline bool compare_row_is_finding(const struct compare_row *row)
{
    return (row->answer == COMPARE_SLOWER || row->answer == COMPARE_FASTER) && row->because == COMPARE_NO_ROW;
}

/* A row about nothing yet. */
#define COMPARE_ROW_OF(kind_)                                                                                              \
    ((struct compare_row){.kind = (kind_), .function = RUN_SET_NONE, .node = RUN_SET_NONE, .line = RUN_SET_NONE,            \
                          .module = RUN_SET_NONE, .old_function = RUN_SET_NONE, .within = RUN_SET_NONE,                     \
                          .because = COMPARE_NO_ROW, .p = 1, .q = 1})

/* Why two runs must not be compared, or why the answer cannot be but "cannot tell". */
enum compare_problem_kind {
    COMPARE_UNLIKE, /* refused, unless forced */
    COMPARE_SMALL,  /* a run has hardly any samples, beside the others: as with lossy ones */
    COMPARE_LOSSY,  /* a run lost over 1 % of its ticks: it is left out, or nothing is concluded where too few others are left */
    COMPARE_FEW,    /* under six runs in all: three of each side, or five against one, are enough */
    COMPARE_NO_WORK,/* nothing says what the runs did: the total cannot be compared */
};
struct compare_problem {
    enum compare_problem_kind kind;
    uint32_t text; /* in comparison.set.texts: for people, one line */
};

#define COMPARE_LINE_UNKNOWN UINT32_MAX

struct compare_options {
    const char *event;     /* NULL: CPU time, else the first that all runs have */
    bool force;            /* unlike runs are compared all the same; the problems stay listed */
    double alpha;          /* of the list: false discoveries; 0: 0.05 */
    double least_samples;  /* mean of both sets a row must have; 0: 10 */
    double least_parent_samples; /* 0: 50 */
    /* Places of lines where the code changed: the line of the new text that an old one became; 0: none;
     * COMPARE_LINE_UNKNOWN: a text is not known, and so none of its lines. NULL: no sources. */
    uint32_t (*new_line)(void *ctx, const char *old_file, const char *new_file, uint32_t old_line);
    /* Rows of such functions are left out; NULL: of none. */
    bool (*is_ignored)(void *ctx, const char *file, const char *function);
    void *ctx; /* of both */
};

struct comparison {
    const struct run_set *set;    /* borrowed: it holds the runs of both sides */
    VEC(uint32_t) old_runs, new_runs; /* in set->runs; without those that were left out */
    /*
     * What a value of a run is divided by, so that runs can be compared and added up: its work, else its size factor (1 on
     * average). The old runs first, then the new.
     */
    VEC(double) factors;
    uint32_t event;               /* text: name of the event compared */
    uint32_t unit;                /* text */
    enum event_value kind;
    bool by_work;                 /* values are per unit of work */
    bool conclusive;              /* false: nothing can be concluded (too few runs, one that lost too much): no row has an answer */
    VEC(struct compare_problem) problems;
    /* [0] is the total; then findings, the surest first; then what has another answer, the surest first; the rest by time. */
    VEC(struct compare_row) rows;
    uint64_t tested_rows;         /* in the one correction */
};

/*
 * Compares. `set` is changed only by texts that are added. Fails with ERROR_UNSUPPORTED if the runs are not alike and force is not
 * set; the message names what differs. The caller deinits *out also after an error.
 */
struct error *compare_runs(struct run_set *set, const uint32_t *old_runs, size_t old_count, const uint32_t *new_runs,
                           size_t new_count, const struct compare_options *options, struct comparison *out);
void comparison_deinit(struct comparison *c);

#endif
