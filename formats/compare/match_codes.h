/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the code objects of a comparison say: which code a function has on each side, by its fingerprint (run_set.h), and so
 * whether it changed. Where the versions of CPython differ, fingerprints say nothing, and all are unknown.
 */
#ifndef FORMATS_COMPARE_MATCH_CODES_H
#define FORMATS_COMPARE_MATCH_CODES_H

#include "formats/compare/sides.h"
#include "formats/compare/subject.h"

/* Shorter tables of lines are alike by chance: sum(range(n)) and max(range(n)) have the same, of 16 bytes. */
enum { MATCH_TABLE_BYTES_LEAST = 32 };

struct match_codes {
    const struct run_set *set;
    bool known;                       /* fingerprints say something */
    double *weight[SIDE_COUNT];       /* by code: time on the stack in all runs of the side */
    uint32_t *main_code[SIDE_COUNT];  /* by function: the code with most time; RUN_SET_NONE */
};

/* The caller deinits `c`, also after an error. */
struct error *match_codes_init(struct match_codes *c, const struct sides *s);
void match_codes_deinit(struct match_codes *c);
/* The function's main code on that side; NULL: not known. */
const struct run_code *match_codes_main(const struct match_codes *c, enum side side, uint32_t function);
/* Its fingerprint; 0: not known. */
uint64_t match_codes_fingerprint(const struct match_codes *c, enum side side, uint32_t function);

/*
 * Fills in subjects[].code. A function may have several codes (lambdas), of which small ones are met by chance: it changed if
 * what only one side has is a tenth of that side's time. `of_function` is that of struct match.
 */
struct error *match_code_states(const struct match_codes *c, uint32_t *const *of_function, struct subject *subjects);

#endif
