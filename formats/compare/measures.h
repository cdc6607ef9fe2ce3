/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each run spent in each thing that both sets have (a function, a node, a line, a file), in samples: a table of things by
 * runs. Things with few samples have no row. Which they are is decided by the mean of all runs, old and new, so that the
 * choice says nothing about the difference; of what one side alone has by the mean of that side, if it has three runs.
 */
#ifndef FORMATS_COMPARE_MEASURES_H
#define FORMATS_COMPARE_MEASURES_H

#include "formats/compare/sides.h"

struct measure {
    double total, self; /* samples; 0: the run spent no time there */
    float total_dispersion, self_dispersion; /* 1 at least */
};

enum measures_of {
    MEASURES_OF_NODES,
    MEASURES_OF_FUNCTIONS,
    MEASURES_OF_LINES,
    MEASURES_OF_MODULES,
};

struct measures {
    size_t runs, rows;
    uint32_t *row_of;      /* by thing; RUN_SET_NONE: too few samples */
    uint32_t *thing_of;    /* by row */
    struct measure *table; /* rows by runs */
    struct limits *limits;
};

/* The runs of a side that must agree on what the other has none of. */
enum { MEASURES_ALONE_RUNS = 3 };

/* The mean by which things are chosen, from the sums of both sides. */
static inline double measures_mean(const struct sides *s, double old_sum, double new_sum)
{
    double old = (double)s->old_count, new = (double)(s->runs.count - s->old_count);

    if (!(old_sum > 0) && new >= MEASURES_ALONE_RUNS)
        return new_sum / new;
    if (!(new_sum > 0) && old >= MEASURES_ALONE_RUNS)
        return old_sum / old;
    return (old_sum + new_sum) / (old + new);
}

/* Which thing each cell's id is of, on each side; RUN_SET_NONE: of none. */
struct measured {
    enum measures_of of;
    const uint32_t *thing[SIDE_COUNT];
    size_t id_count, thing_count;
};

/* Things with `least` samples a run on average get a row. The caller deinits `m`, also after an error. */
struct error *measures_init(struct measures *m, const struct sides *s, const struct measured *what, double least);
void measures_deinit(struct measures *m);
/* The runs of a thing, old ones first; NULL: it has too few samples. */
const struct measure *measures_get(const struct measures *m, uint32_t thing);

#endif
