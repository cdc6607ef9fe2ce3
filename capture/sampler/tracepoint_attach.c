/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program is attached to a tracepoint by a perf event. The event is opened on one CPU, but the kernel runs the program
 * wherever the tracepoint is hit, and whether the event is enabled or not: programs have a switch of their own.
 */
#include "capture/sampler/tracepoint_attach.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct error *refused(int error, const char *name)
{
    if (error == EMFILE)
        return error_create(ERROR_LIMIT, "too many files for '%s': raise ulimit -n, or name fewer events or CPUs (-C)", name);
    if (error == EACCES || error == EPERM)
        return error_os(error, "the kernel does not let this user follow the tracepoint '%s' (CAP_PERFMON and CAP_BPF are needed)",
                        name);
    return error_os(error, "the tracepoint '%s' cannot be followed", name);
}

struct error *tracepoint_attach(const struct bpf_program *program, uint32_t id, const char *name, int cpu, struct bpf_link **link)
{
    struct perf_event_attr attr = {.size = sizeof attr, .type = PERF_TYPE_TRACEPOINT, .config = id, .sample_period = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

    if (fd < 0)
        return refused(errno, name);
    *link = bpf_program__attach_perf_event(program, fd);
    if (*link)
        return NULL; /* the link closes it */
    int error = errno;
    close(fd);
    return refused(error, name);
}
