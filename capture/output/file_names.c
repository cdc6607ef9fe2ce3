/* SPDX-License-Identifier: Apache-2.0 */
/* A name is recognized by going along pattern and name together; the same time and pid may stand in it more than once. */
#include "capture/output/file_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "formats/base/buf.h"
#include "formats/base/clock.h"

#define TIME_LEN (FILES_TIME_BYTES - 1)
#define PID_LEN_MAX 10

struct error *files_check(const char *pattern, bool rotates)
{
    bool time = false;

    for (const char *p = strchr(pattern, '%'); p; p = strchr(p + 2, '%')) {
        if (!p[1] || !strchr("htp%", p[1]))
            return error_create(ERROR_USAGE, "'%s': %%%.1s is not known in a name: %%h host, %%t time, %%p pid, %%%%",
                                pattern, p + 1);
        time |= p[1] == 't';
    }
    if (rotates && !strcmp(pattern, "-"))
        return error_create(ERROR_USAGE, "standard output cannot be rotated: name files with -o, like trace-%%t.bin");
    if (rotates && !time)
        return error_create(ERROR_USAGE, "'%s' gives every file the same name: put %%t into it, like trace-%%t.bin", pattern);
    return NULL;
}

void files_time(uint64_t realtime_ns, char out[FILES_TIME_BYTES])
{
    time_t seconds = (time_t)(realtime_ns / NS_PER_S);
    struct tm tm;
    char text[32];

    strftime(text, sizeof text, "%Y%m%dT%H%M%S", gmtime_r(&seconds, &tm));
    snprintf(out, FILES_TIME_BYTES, "%.15s.%03uZ", text, (unsigned)(realtime_ns / NS_PER_MS % 1000));
}

char *files_name(const char *pattern, const char *hostname, uint64_t realtime_ns)
{
    struct buf name = {0};
    char text[FILES_TIME_BYTES + 12];

    for (const char *p = pattern; *p; p++) {
        if (*p != '%') {
            buf_put(&name, p, 1);
            continue;
        }
        switch (*++p) {
        case 'h':
            buf_put_str(&name, hostname);
            break;
        case 't':
            files_time(realtime_ns, text);
            buf_put_str(&name, text);
            break;
        case 'p':
            snprintf(text, sizeof text, "%ld", (long)getpid());
            buf_put_str(&name, text);
            break;
        default:
            buf_put_str(&name, "%");
        }
    }
    char *result = name.bad ? NULL : strdup(buf_cstr(&name));
    buf_deinit(&name);
    return result;
}

/* What was found for %t and %p: wherever they stand again, they are the same. */
struct name_parts {
    const char *time, *pid;
    size_t pid_len;
};

static bool is_time(const char *text)
{
    char again[FILES_TIME_BYTES];
    struct tm tm = {0};

    /* Only what is written the same again: strptime() takes more. */
    if (strnlen(text, TIME_LEN) < TIME_LEN || !strptime(text, "%Y%m%dT%H%M%S", &tm))
        return false;
    time_t seconds = timegm(&tm);
    if (seconds < 0)
        return false;
    uint64_t ms = strtoul(text + strlen("20260131T235959."), NULL, 10) % 1000;
    files_time((uint64_t)seconds * NS_PER_S + ms * NS_PER_MS, again);
    return !strncmp(text, again, TIME_LEN);
}

static bool match(const char *pattern, const char *hostname, const char *name, struct name_parts *found)
{
    for (; *pattern; pattern++) {
        const char *literal = pattern;
        size_t len = 1;
        if (*pattern == '%') {
            pattern++;
            literal = *pattern == 'h' ? hostname : *pattern == 't' ? found->time : *pattern == 'p' ? found->pid : "%";
            len = *pattern == 'h' ? strlen(hostname) : *pattern == 't' ? TIME_LEN : *pattern == 'p' ? found->pid_len : 1;
        }
        if (!literal && *pattern == 't') {
            if (!is_time(name))
                return false;
            literal = found->time = name;
        } else if (!literal) {
            size_t digits = *name == '0' ? 0 : strspn(name, "0123456789");
            /* What follows may begin with digits, too. */
            for (len = 1; len <= digits && len <= PID_LEN_MAX; len++) {
                struct name_parts rest = {.time = found->time, .pid = name, .pid_len = len};
                if (match(pattern + 1, hostname, name + len, &rest)) {
                    *found = rest;
                    return true;
                }
            }
            return false;
        }
        if (strncmp(name, literal, len))
            return false;
        name += len;
    }
    return !*name;
}

bool files_match(const char *pattern, const char *hostname, const char *name, char time[FILES_TIME_BYTES])
{
    struct name_parts found = {0};

    if (!match(pattern, hostname, name, &found) || !found.time)
        return false;
    snprintf(time, FILES_TIME_BYTES, "%.*s", (int)TIME_LEN, found.time);
    return true;
}
