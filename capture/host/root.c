/* SPDX-License-Identifier: Apache-2.0 */
/* openat2(2) keeps links inside the root of the process. */
#include "capture/host/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int root_open(pid_t pid, const char *path, bool follow)
{
    struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW),
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    char root[64] = "/";
    struct stat st;

    if (pid)
        snprintf(root, sizeof root, "/proc/%d/root", pid);
    int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    int why = errno;
    close(dir);
    if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
        why = ENOENT;
    }
    errno = why;
    return fd;
}
