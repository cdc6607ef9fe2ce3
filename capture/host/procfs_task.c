/* SPDX-License-Identifier: Apache-2.0 */
/* A name may hold anything, so the fields of a stat file are counted from its last parenthesis on. */
#include "capture/host/procfs_task.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool procfs_read_fd(int fd, char *text, size_t cap)
{
    ssize_t n = pread(fd, text, cap - 1, 0);

    if (n <= 0)
        return false;
    text[n] = 0;
    return true;
}

bool procfs_read_at(int dir_fd, const char *path, char *text, size_t cap)
{
    int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return false;
    bool ok = procfs_read_fd(fd, text, cap);
    close(fd);
    return ok;
}

bool procfs_parse_stat(const char *text, struct procfs_stat *out)
{
    /* Fields by their number in proc(5). */
    enum { PARENT = 4, MINOR = 10, MAJOR = 12, WAITED_USER = 16, WAITED_SYSTEM = 17, START = 22, START_CODE = 26,
           START_STACK = 28, CPU = 39, FIELDS };
    const char *open = strchr(text, '('), *p = strrchr(text, ')');
    uint64_t field[FIELDS] = {0};

    *out = (struct procfs_stat){0};
    if (!open || !p || p < open || p[1] != ' ' || !p[2] || p[3] != ' ')
        return false;
    snprintf(out->comm, sizeof out->comm, "%.*s", (int)(p - open - 1), open + 1);
    out->state = p[2];
    p += 4;
    for (int i = PARENT; i < FIELDS; i++) {
        char *rest;
        field[i] = strtoull(p, &rest, 10);
        if (rest == p)
            return false;
        p = rest;
    }
    out->parent_tgid = (uint32_t)field[PARENT];
    out->minor_faults = field[MINOR];
    out->major_faults = field[MAJOR];
    out->waited_ticks = field[WAITED_USER] + field[WAITED_SYSTEM];
    out->start_ticks = field[START];
    out->image = field[START_CODE] ^ field[START_STACK] << 16;
    out->stack_start = field[START_STACK];
    out->cpu = (uint32_t)field[CPU];
    return true;
}

bool procfs_stat(pid_t pid, pid_t tid, struct procfs_stat *out)
{
    char path[64], text[1024];

    if (tid)
        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    else
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return procfs_read_at(AT_FDCWD, path, text, sizeof text) && procfs_parse_stat(text, out);
}

uint32_t procfs_last_number(const char *status, const char *name)
{
    size_t name_len = strlen(name);

    for (const char *line = status; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, name_len))
            continue;
        const char *last = line + name_len;
        for (const char *p = last; *p && *p != '\n'; p++)
            last = *p == '\t' || *p == ' ' ? p : last;
        return (uint32_t)strtoul(last, NULL, 10);
    }
    return 0;
}

size_t procfs_parse_groups(const char *status, uint32_t *groups, size_t max)
{
    const char *line = strstr(status, "\nGid:\t"), *list = strstr(status, "\nGroups:\t");
    size_t count = 0;
    int len;

    if (max && line && sscanf(line, "\nGid: %*u %*u %*u %u", &groups[0]) == 1)
        count = 1;
    if (!list)
        return count;
    list += strlen("\nGroups:\t");
    while (count < max && *list != '\n' && sscanf(list, "%u%n", &groups[count], &len) == 1) {
        count++;
        list += len;
        list += *list == ' ';
    }
    return count;
}

bool procfs_parse_uids(const char *status, struct procfs_uids *out)
{
    const char *line = strstr(status, "\nUid:\t"); /* the kernel escapes line breaks in names */

    return line && sscanf(line, "\nUid: %u %u %u %u", &out->real, &out->effective, &out->saved, &out->files) == 4;
}
