/* SPDX-License-Identifier: Apache-2.0 */
/* The root is opened once, and what is in it is found from there. */
#include "capture/host/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/host/procfs.h"
#include "formats/base/open_regular.h"

bool root_identify(pid_t pid, struct root_identity *out)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/root/.", pid);
    if (stat(path, &st))
        return false;
    *out = (struct root_identity){procfs_namespace(pid, "mnt"), st.st_dev, st.st_ino};
    return out->mount_namespace != 0;
}

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
