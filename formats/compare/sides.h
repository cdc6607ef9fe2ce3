/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs that are compared, each with its part of the one event that is compared. All figures of a comparison stand in this
 * order: the old runs, then the new ones.
 */
#ifndef FORMATS_COMPARE_SIDES_H
#define FORMATS_COMPARE_SIDES_H

#include <math.h>

#include "formats/compare/run_set.h"

enum side {
    SIDE_OLD,
    SIDE_NEW,
    SIDE_COUNT,
};

struct side_run {
    uint32_t number; /* in set->runs */
    const struct run *run;
    const struct run_event *event;
    double weight;   /* of a sample, in the unit of the event; over 0 */
};

struct sides {
    struct run_set *set; /* borrowed; its runs must stay where they are */
    VEC(struct side_run) runs;
    size_t old_count;
};

/*
 * Chooses the event: `event` if that is not NULL, else CPU time, else the first that all runs have. Fails with
 * ERROR_UNSUPPORTED if there is no such, and with ERROR_USAGE if a side has no run. The caller deinits `s` also then.
 */
struct error *sides_init(struct sides *s, struct run_set *set, const uint32_t *old_runs, size_t old_count,
                         const uint32_t *new_runs, size_t new_count, const char *event);
void sides_deinit(struct sides *s);

static inline enum side side_of(const struct sides *s, size_t run)
{
    return run < s->old_count ? SIDE_OLD : SIDE_NEW;
}

/* More than any run has: so that variances stay over 0. */
#define SIDE_SAMPLES_MAX 1e14
/* A value of the run as a number of samples. What is no value (files may hold anything) counts as none. */
static inline double side_samples(const struct side_run *r, double value)
{
    return value > 0 && value < 1e300 ? fmin(value / r->weight, SIDE_SAMPLES_MAX) : 0;
}

#endif
