/* SPDX-License-Identifier: Apache-2.0 */
/* Walks from the own cgroup upwards, in each hierarchy that has a limit of memory. A file without a number sets none. */
#include "capture/host/memory_limit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/host/procfs.h"
#include "capture/host/procfs_task.h"

/* The two kinds of hierarchy: how a mount, a line of /proc/PID/cgroup and a limit look. */
static const struct hierarchy {
    const char *mount, *option; /* of a line of mountinfo: its kind, and what else it must have */
    const char *line, *file;
} hierarchies[] = {
    {" - cgroup2 ", "", "0::/", "memory.max"},
    {" - cgroup ", "memory", ":memory:/", "memory.limit_in_bytes"},
};

/* Takes the next line of a text, as much as fits; false at the end. */
static bool next_line(const char **text, char *line, size_t cap)
{
    size_t len = strcspn(*text, "\n");

    if (!**text)
        return false;
    snprintf(line, cap, "%.*s", (int)len, *text);
    *text += len + ((*text)[len] == '\n');
    return true;
}

static bool find_mount(const struct hierarchy *h, const char *mountinfo, char mount[PATH_MAX])
{
    char line[2 * PATH_MAX];

    while (next_line(&mountinfo, line, sizeof line)) {
        const char *kind = strstr(line, h->mount);
        if (kind && strstr(kind, h->option) && sscanf(line, "%*s %*s %*s %*s %4095s", mount) == 1)
            return true;
    }
    return false;
}

static bool find_path(const struct hierarchy *h, const char *cgroups, char path[PATH_MAX])
{
    char line[2 * PATH_MAX];

    while (next_line(&cgroups, line, sizeof line)) {
        const char *at = strstr(line, h->line);
        if (at && (at == line || h->line[0] == ':')) {
            snprintf(path, PATH_MAX, "%s", at + strlen(h->line) - 1);
            return true;
        }
    }
    return false;
}

static uint64_t limit_in(const struct hierarchy *h, const char *root, const char *mount, char *path)
{
    uint64_t least = UINT64_MAX;

    for (;;) {
        char *name, text[64], *rest;
        if (asprintf(&name, "%s%s%s/%s", root, mount, path, h->file) < 0)
            return least;
        bool read = procfs_read_at(AT_FDCWD, name, text, sizeof text);
        free(name);
        uint64_t limit = read ? strtoull(text, &rest, 10) : 0;
        if (read && rest != text && limit < least)
            least = limit;
        char *slash = strrchr(path, '/');
        if (!slash)
            return least;
        *slash = 0;
    }
}

uint64_t memory_limit_by(const char *mountinfo, const char *cgroups, const char *root)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies; i++) {
        char mount[PATH_MAX], path[PATH_MAX];
        if (!find_mount(&hierarchies[i], mountinfo, mount) || !find_path(&hierarchies[i], cgroups, path))
            continue;
        uint64_t limit = limit_in(&hierarchies[i], root, mount, path);
        least = limit < least ? limit : least;
    }
    return least;
}

uint64_t memory_available(void)
{
    static const char name[] = "\nMemAvailable:";
    uint64_t available = UINT64_MAX, limit = memory_limit();
    char text[1024];

    const char *at = procfs_read_at(AT_FDCWD, "/proc/meminfo", text, sizeof text) ? strstr(text, name) : NULL;
    if (at)
        available = strtoull(at + sizeof name - 1, NULL, 10) * 1024;
    return limit < available ? limit : available;
}

uint64_t memory_limit(void)
{
    char *mountinfo = NULL, *cgroups = NULL;
    struct error *err = procfs_read("/proc/self/mountinfo", &mountinfo, NULL);

    if (!err)
        err = procfs_read("/proc/self/cgroup", &cgroups, NULL);
    uint64_t least = err ? UINT64_MAX : memory_limit_by(mountinfo, cgroups, "");
    error_destroy(err);
    free(mountinfo);
    free(cgroups);
    return least;
}
