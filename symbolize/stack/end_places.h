/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where native stacks end that are not whole: the function of their outermost frame, whose caller could not be found.
 *
 * Of each reason so many places are kept. When there are more, a new one takes the place of the one with the fewest
 * samples (the Space-Saving algorithm): a function with more than one in END_PLACES_KEPT of a reason's samples is always
 * among those kept, and what is said of it is no more than it had.
 */
#ifndef SYMBOLIZE_STACK_END_PLACES_H
#define SYMBOLIZE_STACK_END_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/buf.h"

enum { END_PLACES_KEPT = 32, END_PLACE_REASONS = 7 };

struct end_place {
    const char *module, *function; /* texts of the model, each of which is there once; "": not known */
    uint64_t count;                /* samples, and perhaps some of places that were given up */
    uint64_t others;               /* at most so many of them */
};

/* {0} is empty. */
struct end_places {
    struct end_place rows[END_PLACE_REASONS][END_PLACES_KEPT];
    uint32_t row_counts[END_PLACE_REASONS];
};

/* Nothing for reasons that say nothing of a place, such as too many frames. */
void end_places_add(struct end_places *p, uint32_t reason, const char *module, const char *function, uint64_t samples);
/* The place with the most samples of a reason, and in *samples how many it has at least. NULL: no place is known. */
const struct end_place *end_places_most(const struct end_places *p, uint32_t reason, uint64_t *samples);
/* Appends ", most in clone3 of libc.so.6 (700)", if a place is known; `total` is the number of samples of the reason. */
void end_places_put(const struct end_places *p, uint32_t reason, uint64_t total, struct buf *line);

#endif
