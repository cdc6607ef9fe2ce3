/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of a table of functions: the processes of one name are one program. A process that ran several is of the newest
 * that has samples. Processes that belong together, a parent and what it began, stand together: first the program at the root of the
 * heaviest tree, then what it began.
 */
#ifndef FORMATS_EMIT_TOP_PROGRAMS_H
#define FORMATS_EMIT_TOP_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/err.h"
#include "formats/base/intern.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"
#include "formats/emit/emit.h"

/* The processes of one name. */
struct top_program {
    uint32_t name;  /* in `names` */
    uint32_t count; /* of processes */
    uint32_t pid;   /* of the first */
    uint64_t weight;
    uint64_t tree_weight; /* of the heaviest tree of processes that one of them is in */
    bool is_root;         /* one of them has no parent here */
};

struct top_programs {
    struct intern names;
    VEC(struct top_program) list; /* in their order */
    uint32_t process_count;
};

/*
 * Finds the programs of processes: `weights` has the weight of each by its number in the model. {0}, or what is left after an
 * error, is for the caller to deinit.
 */
struct error *top_programs_find(struct top_programs *p, const struct emit_model *model, struct limits *limits, const struct map *weights);
void top_programs_deinit(struct top_programs *p);

#endif
