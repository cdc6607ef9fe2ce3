/* SPDX-License-Identifier: Apache-2.0 */
#define XXH_INLINE_ALL
#include "symbolize/push/trace_name.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "formats/base/clock.h"

static const char shape[] = "00000000T000000.000Z"; /* 0: a digit */
enum { TIME_LEN = sizeof shape - 1 };

static bool has_shape(const char *text)
{
    for (size_t i = 0; i < TIME_LEN; i++) {
        if (shape[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != shape[i])
            return false;
    }
    return true;
}

/* 0: no day of the calendar, or before 1970. */
static uint64_t time_of(const char *text)
{
    struct tm tm = {0};
    const char *end = strptime(text, "%Y%m%dT%H%M%S", &tm);
    time_t seconds = end && *end == '.' ? timegm(&tm) : 0;

    return seconds > 0 ? (uint64_t)seconds * NS_PER_S + strtoul(end + 1, NULL, 10) * NS_PER_MS : 0;
}

uint64_t trace_name_time(const char *path, uint64_t *series)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t len = strlen(name);

    for (size_t i = 0; i + TIME_LEN <= len; i++) {
        uint64_t time_ns = has_shape(name + i) ? time_of(name + i) : 0;
        if (!time_ns)
            continue;
        *series = XXH3_64bits(path, (size_t)(name + i - path));
        *series = XXH3_64bits_withSeed(name + i + TIME_LEN, len - i - TIME_LEN, *series);
        return time_ns;
    }
    *series = XXH3_64bits(path, strlen(path));
    return 0;
}
