/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel writes the names of a status file at the beginning of lines, and escapes line breaks in the process's own name. */
#include "capture/host/procfs_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/procfs_task.h"
#include "formats/base/clock.h"

/* What is read stands behind the list of groups. A process of more than 1,000 groups makes the list longer: it is not read. */
#define STATUS_BYTES 16384

/* Reads "\nRssAnon:\t  123 kB" as bytes; false: there is no such line. */
static bool read_line(const char *status, const char *name, uint64_t *bytes)
{
    const char *line = strstr(status, name);
    char *end;

    *bytes = 0;
    if (!line)
        return false;
    uint64_t kilobytes = strtoull(line + strlen(name), &end, 10);
    if (strncmp(end, " kB\n", 4) || kilobytes > UINT64_MAX / 1024)
        return false;
    *bytes = kilobytes * 1024;
    return true;
}

bool procfs_parse_memory(const char *status, struct procfs_memory *out)
{
    /* A kernel without swap has no line for it. */
    read_line(status, "\nVmSwap:", &out->swap_bytes);
    return read_line(status, "\nRssAnon:", &out->anonymous_bytes) && read_line(status, "\nRssFile:", &out->file_bytes) &&
           read_line(status, "\nRssShmem:", &out->shared_bytes) && read_line(status, "\nVmData:", &out->data_bytes);
}

bool procfs_memory(pid_t pid, struct procfs_memory *out)
{
    char path[64], text[STATUS_BYTES];
    struct procfs_stat stat;

    *out = (struct procfs_memory){0};
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (!procfs_read_at(AT_FDCWD, path, text, sizeof text) || !procfs_parse_memory(text, out))
        return false;
    out->time_ns = now_ns();
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (!procfs_read_at(AT_FDCWD, path, text, sizeof text) || !procfs_parse_stat(text, &stat))
        return false;
    out->minor_faults = stat.minor_faults;
    out->major_faults = stat.major_faults;
    out->image = stat.image;
    return true;
}
