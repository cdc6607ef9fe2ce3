/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The range of time that --time asks for, FROM,TO. An end is given
 *
 *     12.5                       as seconds since the start of the file
 *     50%                        as a share of the file's duration
 *     14:05:00.5                 as a time of the day on which the file begins
 *     2026-11-22T14:05:00        as a date and time
 *
 * Times of the day and dates are UTC, as the summary shows them, unless Z or an offset such as +02:00 follows. A time of
 * the day that lies more than 12 hours before the start of the file is one of the next day: the capture went on over
 * midnight. So is the second of two if it lies before the start; the first is of the day before if it lies more than 12
 * hours after the start and the second does not.
 */
#ifndef SYMBOLIZE_PASS_TIME_RANGE_H
#define SYMBOLIZE_PASS_TIME_RANGE_H

#include <stdbool.h>
#include <stdint.h>

enum time_bound_kind {
    TIME_OPEN, /* no bound */
    TIME_SINCE_START,
    TIME_SHARE,
    TIME_OF_DAY,
    TIME_DATE,
};
struct time_bound {
    enum time_bound_kind kind;
    int64_t value; /* ns since the start, midnight or 1970 (UTC; may be negative); of TIME_SHARE millionths of a percent */
};
struct time_range {
    struct time_bound from, to; /* `to` is exclusive, but for 100 % */
};

/* What is known of the file that the range is applied to. */
struct file_times {
    uint64_t start_ns;          /* CLOCK_MONOTONIC */
    bool has_clock;
    uint64_t start_realtime_ns; /* since 1970; if has_clock */
    uint64_t duration_ns;       /* for TIME_SHARE */
};

/* Reads "FROM,TO"; either may be empty. False: it is no such text, or FROM is not before TO. */
bool time_range_parse(const char *text, struct time_range *out);
static inline bool time_range_is_open(const struct time_range *r)
{
    return r->from.kind == TIME_OPEN && r->to.kind == TIME_OPEN;
}
/* True if an end is a share, so that the duration must be known beforehand. */
bool time_range_has_share(const struct time_range *r);
/* True if an end is a time of the day or a date. */
bool time_range_has_clock(const struct time_range *r);
/* The range in a file, in ns since its start; *to_ns is exclusive. False: the file does not say what time it was. */
bool time_range_in_file(const struct time_range *r, const struct file_times *file, uint64_t *from_ns, uint64_t *to_ns);

#endif
