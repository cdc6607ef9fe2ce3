/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that a comparison must not break, from --fail-on and from a budget file of plain lines.
 */
#ifndef FORMATS_COMPARE_GATE_H
#define FORMATS_COMPARE_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "formats/compare/comparison.h"

enum gate_answer {
    GATE_KEPT,      /* surely not over the limit */
    GATE_UNDECIDED, /* cannot tell */
    GATE_BROKEN,    /* surely over the limit */
};

/* What became of one rule, for the row that was nearest to breaking it. */
struct gate_result {
    const char *rule;   /* as given */
    const char *origin; /* "--fail-on", or "budget.txt:3" */
    enum gate_answer answer;
    uint32_t row;       /* COMPARE_NO_ROW: no row was meant, or none could be tested */
    double limit;       /* 0.02 for 2 % */
    double change, low, high; /* as in the row, at the rule's own level */
    double runs_needed; /* for GATE_UNDECIDED; 0: not known */
    char reason[120];   /* why, where there is no row: "3 old and 3 new runs: the rules ask for 5 and 5" */
};

struct gate;
/* An empty list of rules. NULL: out of memory. */
struct gate *gate_create(void);
void gate_destroy(struct gate *g);
/* Adds a rule of the grammar of docs/compare.md. ERROR_USAGE names what is wrong, with the origin. Texts are copied. */
struct error *gate_add(struct gate *g, const char *rule, const char *origin);
/* Adds the lines of a budget file. */
struct error *gate_add_file(struct gate *g, const char *path);
/* Look K of N spends its part of the error (formats/stats/spending.h). */
struct error *gate_set_look(struct gate *g, uint32_t look, uint32_t looks);
/* Judges; *results live as long as the gate. `ignore` rules have left their rows out: see gate_ignores(). */
struct error *gate_judge(struct gate *g, const struct comparison *c, const struct gate_result **results, size_t *count);
/* Does an `ignore` rule name the function or file? Such rows are not tested. */
bool gate_ignores(const struct gate *g, const char *file, const char *function);
bool gate_undecided_fails(const struct gate *g);

#endif
