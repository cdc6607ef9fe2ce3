/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a set of runs the stacks of a model belong, worked out once for each stack. */
#ifndef FORMATS_COMPARE_TALLY_PLACES_H
#define FORMATS_COMPARE_TALLY_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/compare/run_set.h"
#include "formats/emit/emit.h"

/* Of a stack; all RUN_SET_NONE until it is worked out. */
struct tally_place {
    uint32_t node;
    uint32_t path; /* in tally_places.paths */
    uint32_t line; /* of the owner; RUN_SET_NONE: there is no owner */
};

/* Of a Python frame, likewise. */
struct tally_frame {
    uint32_t code, line;
};

/*
 * The functions of a stack, each once, where nodes cut recursion back: of `a;b;a` the node is `a`, the path `a;b`. Path 0 is
 * empty. A path is its parent and a code more.
 */
struct tally_path {
    uint32_t parent, code;
};
#define TALLY_NO_PATH 0

struct tally_places {
    const struct emit_model *model; /* borrowed, as the set */
    struct run_set *set;
    VEC(struct tally_place) stacks; /* by number in the model */
    VEC(struct tally_frame) frames;
    VEC(struct tally_path) paths;
    struct map path_keys;
    VEC(uint32_t) pending; /* scratch */
};

/* False: out of memory or over the limits, as below. */
bool tally_places_init(struct tally_places *p, const struct emit_model *model, struct run_set *set);
void tally_places_deinit(struct tally_places *p);
/* The place of a stack, which may be EMIT_NO_STACK. */
bool tally_place_of(struct tally_places *p, uint32_t stack, struct tally_place *out);

#endif
