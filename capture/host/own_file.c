/* SPDX-License-Identifier: Apache-2.0 */
/* The mount that a descriptor is on stands in /proc/self/fdinfo since Linux 3.15; statx() knows it only since 5.8. */
#include "capture/host/own_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/errand.h"
#include "capture/host/procfs.h"
#include "capture/host/procfs_task.h"
#include "capture/host/root.h"
#include "formats/base/open_regular.h"

/* The text of a small file, malloc'd; NULL when it cannot be read. */
static char *read_text(const char *path)
{
    char *text = NULL;
    struct error *err = procfs_read(path, &text, NULL);

    error_destroy(err);
    return err ? NULL : text;
}

/* Whether several users may show as this one: those that have no id in our user namespace. */
static bool is_ambiguous(uint32_t user)
{
    char *overflow = read_text("/proc/sys/kernel/overflowuid"), *map = read_text("/proc/self/uid_map");
    uint32_t first = 1, outside, count = 0, id = overflow ? (uint32_t)strtoul(overflow, NULL, 10) : 65534;
    bool complete = map && sscanf(map, "%u %u %u", &first, &outside, &count) == 3 && !first && count == UINT32_MAX;

    free(overflow);
    free(map);
    return user == id && !complete;
}

bool own_file_user(pid_t pid, uint32_t *user)
{
    struct procfs_uids uids;
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    char *text = read_text(path);
    bool known = text && procfs_parse_uids(text, &uids);
    free(text);
    if (!known)
        return false;
    bool one = uids.real == uids.effective && uids.real == uids.saved && uids.real == uids.files;
    *user = one && !is_ambiguous(uids.real) ? uids.real : OWN_FILE_NO_USER;
    return true;
}

bool own_file_is_of(const struct stat *st, uint32_t user)
{
    return user != OWN_FILE_NO_USER && S_ISREG(st->st_mode) && st->st_uid == user && st->st_nlink <= 1;
}

/* The number of the mount; 0: not known. */
static uint64_t mount_of(int fd)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    char *text = read_text(path);
    const char *line = text ? strstr(text, "mnt_id:") : NULL;
    uint64_t id = line ? strtoull(line + strlen("mnt_id:"), NULL, 10) : 0;
    free(text);
    return id;
}

static int open_now(pid_t pid, const char *name, uint32_t user)
{
    struct stat st;
    int root = root_folder(pid), folder = root < 0 ? -1 : open_path(root, "tmp", OPEN_NO_LINKS);
    int fd = folder < 0 ? -1 : open_regular_path(folder, name, OPEN_NO_LINKS);

    if (fd >= 0) {
        uint64_t mount = mount_of(fd);
        if (fstat(fd, &st) || !own_file_is_of(&st, user) || !mount || mount != mount_of(folder)) {
            close(fd);
            fd = -1;
        }
    }
    if (folder >= 0)
        close(folder);
    if (root >= 0)
        close(root);
    return open_regular_reopen(fd);
}

struct own_call {
    pid_t pid;
    uint32_t user;
    char name[64];
};

static void run_open(void *bytes, size_t size, int *fd)
{
    const struct own_call *c = bytes;

    (void)size;
    *fd = open_now(c->pid, c->name, c->user);
}

int own_file_open(pid_t pid, const char *name, uint32_t user)
{
    struct own_call c = {.pid = pid, .user = user};
    int fd = -1;

    snprintf(c.name, sizeof c.name, "%s", name);
    return errand_run(-pid, run_open, &c, sizeof c, &fd) ? fd : -1;
}
