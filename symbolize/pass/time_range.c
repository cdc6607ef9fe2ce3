/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the argument of --time and applies it to files, see time_range.h. */
#include "symbolize/pass/time_range.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)
#define S_PER_DAY INT64_C(86400)
#define WHOLE INT64_C(100000000) /* 100 % in millionths of a percent */

/* ---- reading ---- */

/* Digits, exactly `count` of them. */
static bool read_digits(const char **at, int count, int max, int *out)
{
    for (*out = 0; count; count--, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        *out = *out * 10 + (**at - '0');
    }
    return *out <= max;
}

static bool read_char(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

/* HH:MM, HH:MM:SS or HH:MM:SS.fraction, as ns since midnight. */
static bool read_time_of_day(const char **at, int64_t *ns)
{
    int hours, minutes, seconds = 0;
    int64_t digit = NS_PER_S / 10;

    if (!read_digits(at, 2, 23, &hours) || !read_char(at, ':') || !read_digits(at, 2, 59, &minutes))
        return false;
    if (read_char(at, ':') && !read_digits(at, 2, 60, &seconds))
        return false;
    *ns = ((hours * INT64_C(60) + minutes) * 60 + seconds) * NS_PER_S;
    if (!read_char(at, '.'))
        return true;
    for (; **at >= '0' && **at <= '9'; (*at)++, digit /= 10)
        *ns += (**at - '0') * digit;
    return true;
}

/* Z, +HH:MM, -HH:MM or nothing, as ns east of UTC. */
static bool read_zone(const char **at, int64_t *ns)
{
    int hours, minutes, sign = **at == '-' ? -1 : 1;

    *ns = 0;
    if (read_char(at, 'Z'))
        return true;
    if (**at != '+' && **at != '-')
        return true;
    (*at)++;
    if (!read_digits(at, 2, 23, &hours))
        return false;
    (void)read_char(at, ':');
    if (!read_digits(at, 2, 59, &minutes))
        return false;
    *ns = sign * (hours * INT64_C(60) + minutes) * 60 * NS_PER_S;
    return true;
}

/* YYYY-MM-DD and "T" or a blank, as ns since 1970. */
static bool read_date(const char **at, int64_t *ns)
{
    struct tm tm = {0};

    if (!read_digits(at, 4, 2261, &tm.tm_year) || !read_char(at, '-') || !read_digits(at, 2, 12, &tm.tm_mon) ||
        !read_char(at, '-') || !read_digits(at, 2, 31, &tm.tm_mday) || !(read_char(at, 'T') || read_char(at, ' ')) ||
        tm.tm_year < 1970 || tm.tm_mon < 1 || tm.tm_mday < 1)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    *ns = (int64_t)timegm(&tm) * NS_PER_S;
    return true;
}

static bool read_clock(const char *text, struct time_bound *out)
{
    bool dated = strlen(text) > 4 && text[4] == '-';
    int64_t date = 0, time, zone;

    if ((dated && !read_date(&text, &date)) || !read_time_of_day(&text, &time) || !read_zone(&text, &zone) || *text)
        return false;
    *out = (struct time_bound){dated ? TIME_DATE : TIME_OF_DAY, date + time - zone};
    return true;
}

static bool read_bound(const char *text, struct time_bound *out)
{
    char *end;

    *out = (struct time_bound){0};
    if (!*text)
        return true;
    if (strchr(text, ':'))
        return read_clock(text, out);
    double number = strtod(text, &end);
    bool share = *end == '%';
    if (end == text || end[share] || !isfinite(number) || number < 0 || number > (share ? 100 : 1e9))
        return false;
    *out = share ? (struct time_bound){TIME_SHARE, (int64_t)(number * 1e6 + 0.5)}
                 : (struct time_bound){TIME_SINCE_START, (int64_t)(number * 1e9 + 0.5)};
    return true;
}

bool time_range_parse(const char *text, struct time_range *out)
{
    const char *comma = strchr(text, ',');
    char from[64];

    if (!comma || (size_t)(comma - text) >= sizeof from)
        return false;
    snprintf(from, sizeof from, "%.*s", (int)(comma - text), text);
    if (!read_bound(from, &out->from) || !read_bound(comma + 1, &out->to))
        return false;
    /* Times of the day may stand on either side of midnight; ends of different kinds can be compared in a file only. */
    return out->from.kind != out->to.kind || out->from.kind == TIME_OPEN || out->from.kind == TIME_OF_DAY ||
           out->from.value < out->to.value;
}

bool time_range_has_share(const struct time_range *r)
{
    return r->from.kind == TIME_SHARE || r->to.kind == TIME_SHARE;
}

static bool is_clock(const struct time_bound *b)
{
    return b->kind == TIME_OF_DAY || b->kind == TIME_DATE;
}

bool time_range_has_clock(const struct time_range *r)
{
    return is_clock(&r->from) || is_clock(&r->to);
}

/* ---- applying it ---- */

/* Since the start of the file; what lies before it is 0. */
static uint64_t since_start(int64_t date_ns, const struct file_times *file)
{
    return date_ns > 0 && (uint64_t)date_ns > file->start_realtime_ns ? (uint64_t)date_ns - file->start_realtime_ns : 0;
}

static uint64_t bound_in_file(const struct time_bound *b, const struct file_times *file, uint64_t open)
{
    const int64_t day = S_PER_DAY * NS_PER_S;

    switch (b->kind) {
    case TIME_SINCE_START:
        return (uint64_t)b->value;
    case TIME_SHARE:
        return b->value >= WHOLE ? UINT64_MAX : (uint64_t)((double)file->duration_ns * (double)b->value / (double)WHOLE);
    case TIME_OF_DAY: {
        int64_t start = file->start_realtime_ns > INT64_MAX / 2 ? 0 : (int64_t)file->start_realtime_ns;
        int64_t date = start - start % day + b->value;
        return since_start(date < start - day / 2 ? date + day : date, file);
    }
    case TIME_DATE:
        return since_start(b->value, file);
    case TIME_OPEN:
        break;
    }
    return open;
}

bool time_range_in_file(const struct time_range *r, const struct file_times *file, uint64_t *from_ns, uint64_t *to_ns)
{
    if (!file->has_clock && time_range_has_clock(r))
        return false;
    *from_ns = bound_in_file(&r->from, file, 0);
    *to_ns = bound_in_file(&r->to, file, UINT64_MAX);
    if (r->from.kind != TIME_OF_DAY || r->to.kind != TIME_OF_DAY || *from_ns <= *to_ns)
        return true;
    /* Over midnight: the second of the next day, or the first of the day before. */
    const int64_t day_ns = S_PER_DAY * NS_PER_S;
    const struct time_bound next = {TIME_OF_DAY, r->to.value + day_ns};
    if (!*to_ns)
        *to_ns = bound_in_file(&next, file, UINT64_MAX);
    else if (*from_ns > (uint64_t)day_ns / 2)
        *from_ns = 0;
    return true;
}
