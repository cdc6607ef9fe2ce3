/* SPDX-License-Identifier: Apache-2.0 */
/* The root is opened once, and what is in it is found from there. */
#include "capture/host/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

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

int root_open_public(pid_t pid, const char *path)
{
    return open_regular_reopen(find(pid, path, OPEN_PUBLIC));
}

int root_open(pid_t pid, const char *path)
{
    return open_regular_reopen(root_find(pid, path));
}
