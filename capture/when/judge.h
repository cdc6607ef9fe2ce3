/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a condition holds, judged by looks at running totals: how long all threads together have run, and so on. How much
 * a total grew in a time is how many threads did that on average.
 *
 * A condition holds when its limit has been exceeded for as long as it says: in each step, which is an eighth of that time
 * (50 ms at least, 500 ms at most), and on average. A single step below the limit is no end, as a thread may be held up for a
 * moment; two in a row are. So a peak does not count for more than a step longer than it lasts.
 */
#ifndef CAPTURE_WHEN_JUDGE_H
#define CAPTURE_WHEN_JUDGE_H

#include "capture/when/condition.h"

struct when_look {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t total_ns[WHEN_FACTS]; /* of all threads; never less than in an earlier look */
};

/* What is known of one condition. */
struct when_state {
    struct when_look last; /* with which the current step began; time 0: there was no look yet */
    struct when_look since; /* when the limit was first exceeded, while `exceeded` */
    bool exceeded, below;  /* below: the last step was, after others that were not */
    bool holds;            /* when the last step ended */
    bool had_event;
    uint64_t event_ns;     /* of the last one at which it held */
};

struct when_judge {
    const struct when_condition *conditions; /* borrowed */
    uint32_t count;
    struct when_state state[WHEN_CONDITIONS_MAX];
};

#define WHEN_NONE UINT32_MAX

void when_judge_init(struct when_judge *j, const struct when_condition *conditions, uint32_t count);
/* How far apart looks are to be. */
uint64_t when_judge_interval_ns(const struct when_judge *j);
/*
 * Takes a look. Returns the index of the first condition that holds, unless the last event at which it did was less than its
 * every_ns ago; this is an event then. WHEN_NONE: there is none. `*level` gets the average since the limit was exceeded.
 */
uint32_t when_judge_look(struct when_judge *j, const struct when_look *look, double *level);

#endif
