/* SPDX-License-Identifier: Apache-2.0 */
/*
 * It is mounted at /sys/kernel/tracing where systemd runs, or below debugfs; in containers and small images often not at
 * all. Then the calls for mounts of Linux 5.2 make one that lies in no folder: glibc has them since 2.36 only.
 */
#include "capture/event/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FOLDER "/sys/kernel/tracing"

static int open_mounted(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct statfs st;

    if (fd >= 0 && (fstatfs(fd, &st) || st.f_type != TRACEFS_MAGIC)) {
        close(fd);
        errno = ENOENT;
        return -1;
    }
    return fd;
}

static int mount_apart(void)
{
    int context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC), fd = -1;

    if (context < 0)
        return -1;
    if (!syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
        fd = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    int error = errno;
    close(context);
    errno = error;
    return fd;
}

struct error *tracefs_open(int *fd)
{
    *fd = open_mounted(FOLDER);
    if (*fd < 0 && errno == EACCES)
        return error_create(ERROR_PERMISSION, FOLDER ", where the kernel lists its tracepoints, may be read by root or with "
                                              "CAP_DAC_READ_SEARCH only. All events but tracepoints and memory-growth do without");
    if (*fd < 0)
        *fd = open_mounted("/sys/kernel/debug/tracing");
    if (*fd < 0)
        *fd = mount_apart();
    if (*fd >= 0)
        return NULL;
    if (errno == ENODEV)
        return error_create(ERROR_UNSUPPORTED, "this kernel has no tracepoints: it was built without tracefs");
    return error_create(errno == EPERM || errno == EACCES ? ERROR_PERMISSION : ERROR_IO,
                        "tracefs, where the kernel lists its tracepoints, is not mounted, and pycap may not mount it (%s): as root, run mount "
                        "-t tracefs tracefs " FOLDER ". All events but tracepoints and memory-growth do without",
                        strerror(errno));
}
