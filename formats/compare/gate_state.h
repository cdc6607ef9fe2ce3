/* SPDX-License-Identifier: Apache-2.0 */
/* Rules as they were parsed (gate_parse.c), for those who judge by them (gate.c). */
#ifndef FORMATS_COMPARE_GATE_STATE_H
#define FORMATS_COMPARE_GATE_STATE_H

#include "formats/base/vec.h"
#include "formats/compare/gate.h"
#include "formats/compare/name_pattern.h"

enum rule_kind {
    RULE_TOTAL,    /* the time per unit of work */
    RULE_FUNCTION, /* functions, each as a share of its callers */
    RULE_FILE,     /* the own time of all functions of a file or module */
    RULE_NODE,     /* functions below certain callers */
    RULE_NEW,      /* functions that were not there, as a share of all */
};

struct rule {
    enum rule_kind kind;
    char *text, *origin;  /* as given */
    char *pattern_text;   /* which the patterns refer to; a part of a node ends with a 0 byte */
    VEC(struct name_pattern *) patterns; /* one; of RULE_NODE one for each call, outermost first; of RULE_TOTAL and _NEW none */
    double limit;         /* 0.02 for 2 % */
};

struct ignore_rule {
    char *text;
    struct name_pattern *pattern;
};

struct gate {
    VEC(struct rule) rules;
    VEC(struct ignore_rule) ignored;
    VEC(struct gate_result) results; /* of rules, in their order */
    uint32_t least_old, least_new;   /* runs */
    double alpha;
    uint32_t look, looks;            /* 0: there is one look */
    bool undecided_fails;
};

#define GATE_ALPHA 0.05

#endif
