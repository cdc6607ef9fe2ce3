/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads did in the time that a row of `top` stands for, where an event is of waits: they ran on a CPU, or waited for
 * one thing or another. The innermost frame of a wait says which, and the kernel's functions outside of it are how each
 * thread leaves its CPU. So a wait is the time of the function that waits: of the innermost one of Python; without Python
 * the innermost native one.
 */
#ifndef FORMATS_EMIT_TOP_STATES_H
#define FORMATS_EMIT_TOP_STATES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"
#include "formats/base/limits.h"
#include "formats/emit/emit.h"

#define TOP_STATES 12 /* the last one stands for all further ones */

/* Weights by state, of the functions themselves and with what they call. */
struct top_state_weights {
    uint64_t self[TOP_STATES], total[TOP_STATES];
};

struct top_states {
    const struct emit_model *model; /* borrowed, like the limits */
    struct limits *limits;
    const char *names[TOP_STATES];
    uint32_t count;                 /* of names; 0: no sample was seen */
    bool waits;                     /* some samples were of waits: else nothing below is filled in */
    uint64_t weights[TOP_STATES];   /* of all samples */
    struct top_state_weights *rows; /* by the row's name; NULL: none */
    uint32_t row_count;
};

/* {.model, .limits} is empty. */
void top_states_deinit(struct top_states *s);
/* Notes samples of a stack, or of EMIT_NO_STACK. */
void top_states_add(struct top_states *s, uint32_t stack, uint64_t weight);
/* After the last of them, if there are waits: makes room for rows of names below `count`, all 0. False: out of memory. */
bool top_states_rows(struct top_states *s, uint32_t count);
/* The state in which samples of a stack were taken. */
uint32_t top_states_of(const struct top_states *s, uint32_t stack);
/* The stack whose innermost frame has the time of a stack for itself; of samples on a CPU it is the same. */
uint32_t top_states_own(const struct emit_model *model, uint32_t stack);
/* Appends the larger ones of the weights with their shares: "lock 80%, blocked 17%". Of one that is nearly all, its name. */
void top_states_put(const struct top_states *s, const uint64_t *weights, struct buf *out);
/* Puts the states that have any weight in order, the heaviest first. Returns how many. */
uint32_t top_states_order(const struct top_states *s, const uint64_t *weights, uint32_t order[TOP_STATES]);

#endif
