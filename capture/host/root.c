/* SPDX-License-Identifier: Apache-2.0 */
/* The root is opened once, and what is in it is found from there. */
#include "capture/host/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/errand.h"
#include "formats/base/open_regular.h"

int root_folder(pid_t pid)
{
    char root[64] = "/";

    if (pid)
        snprintf(root, sizeof root, "/proc/%d/root", pid);
    return open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int find(pid_t pid, const char *path, enum open_links links)
{
    int folder = root_folder(pid);

    if (folder < 0)
        return -1;
    int fd = open_regular_path(folder, path, links), why = errno;
    close(folder);
    errno = why;
    return fd;
}

int root_find(pid_t pid, const char *path)
{
    return find(pid, path, OPEN_FOLLOW);
}

struct open_call {
    pid_t pid;
    enum open_links links;
    int error;
    char path[PATH_MAX]; /* as much of it as is used */
};

static void run_open(void *bytes, size_t size, int *fd)
{
    struct open_call *c = bytes;

    (void)size;
    *fd = open_regular_reopen(find(c->pid, c->path, c->links));
    c->error = errno;
}

static int open_beside(pid_t pid, const char *path, enum open_links links)
{
    struct open_call c = {.pid = pid, .links = links};
    size_t len = strlen(path) + 1;
    int fd = -1;

    if (len > sizeof c.path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(c.path, path, len);
    if (errand_run_long(-pid, run_open, &c, offsetof(struct open_call, path) + len, &fd))
        errno = c.error;
    return fd;
}

int root_open_public(pid_t pid, const char *path)
{
    return open_beside(pid, path, OPEN_PUBLIC);
}

int root_open(pid_t pid, const char *path)
{
    return open_beside(pid, path, OPEN_FOLLOW);
}
