/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries an event that counts nothing. Kernels of Debian and Ubuntu know values of kernel.perf_event_paranoid above 2, at which
 * perf_event_open() asks for CAP_SYS_ADMIN; a seccomp filter and SELinux refuse it by rules of their own.
 */
#include "capture/host/perf_allowed.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The highest value that the kernel itself knows. */
#define PARANOID_MAX 2

struct error *perf_allowed_check(const struct host *h)
{
    struct perf_event_attr attr = {.size = sizeof attr, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .exclude_kernel = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, -1, h->cpu_count ? h->cpus[0] : 0, -1, PERF_FLAG_FD_CLOEXEC);
    char suspects[RESTRAINTS_TEXT_MAX];
    int why = errno;

    if (fd >= 0) {
        close(fd);
        return NULL;
    }
    if (why == EACCES && h->perf_event_paranoid > PARANOID_MAX && !h->cap_sys_admin)
        return error_create(ERROR_PERMISSION,
                            "kernel.perf_event_paranoid is %d, at which this kernel, like Debian's and Ubuntu's, opens perf events for "
                            "CAP_SYS_ADMIN alone: CAP_PERFMON is not enough. Run as root, or set it to %d: sysctl -w "
                            "kernel.perf_event_paranoid=%d, and a file in /etc/sysctl.d keeps it",
                            h->perf_event_paranoid, PARANOID_MAX, PARANOID_MAX);
    restraints_suspects(suspects);
    if (why == EACCES || why == EPERM)
        return error_create(ERROR_PERMISSION, "perf events may not be opened, though pycap has CAP_PERFMON (%s): %s", strerror(why), suspects);
    if (why == ENOSYS)
        return error_create(ERROR_UNSUPPORTED, "this kernel has no perf events%s", restraints_seccomp() ? ", or a seccomp filter, as containers have, hides them" : "");
    return NULL;
}
