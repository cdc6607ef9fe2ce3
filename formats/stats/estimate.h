/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An estimate of a difference, with what is known of its error: what a test of runs gives, and what is concluded from.
 *
 * All values are on the scale of the measure, which is a logarithm: a change of 2 % is log1p(0.02). With df 0 nothing is
 * known of the error, and nothing follows: every p is 1/2 one-sided and 1 two-sided, every interval is unbounded.
 */
#ifndef FORMATS_STATS_ESTIMATE_H
#define FORMATS_STATS_ESTIMATE_H

struct estimate {
    double difference; /* new less old */
    double error;      /* standard error of the difference; over 0 where df is */
    double df;         /* its degrees of freedom; 0: nothing can be concluded; INFINITY: it is known exactly */
};

enum estimate_answer {
    ESTIMATE_CANNOT_TELL,
    ESTIMATE_ABOVE, /* surely more than the threshold */
    ESTIMATE_BELOW, /* surely less than it */
};

/* The chance of a difference as large as this one, in either direction, if there is none. */
double estimate_p(const struct estimate *e);
/* The chance of a difference as large as this one if there is one of `threshold`; and of one as small. */
double estimate_p_above(const struct estimate *e, double threshold);
double estimate_p_below(const struct estimate *e, double threshold);
/* The interval that holds the true difference with that confidence, such as 0.9. */
void estimate_interval(const struct estimate *e, double confidence, double *low, double *high);
/* Above: the lower bound of the interval with the confidence 1 - 2 alpha is. Below: its upper bound is. */
enum estimate_answer estimate_judge(const struct estimate *e, double threshold, double alpha);

#endif
