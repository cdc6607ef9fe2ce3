/* SPDX-License-Identifier: Apache-2.0 */
/* A list of system calls for libseccomp; the rest fail with EPERM. */
#include "capture/host/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* Calls that are allowed whatever their arguments. */
static const int plain[] = {
    /* files */
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(preadv), SCMP_SYS(write), SCMP_SYS(writev),
    SCMP_SYS(pwrite64), SCMP_SYS(pwritev), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(openat2),
    SCMP_SYS(stat), SCMP_SYS(fstat), SCMP_SYS(lstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(statfs),
    SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink),
    SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(getcwd), SCMP_SYS(fcntl), SCMP_SYS(dup), SCMP_SYS(dup2),
    SCMP_SYS(dup3), SCMP_SYS(fsync), SCMP_SYS(fdatasync), SCMP_SYS(ftruncate), SCMP_SYS(fallocate), SCMP_SYS(fadvise64),
    SCMP_SYS(sendfile), SCMP_SYS(copy_file_range), SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(rename),
    SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(fchmod), SCMP_SYS(fchown), SCMP_SYS(flock), SCMP_SYS(umask),
    /* memory; what would make it executable is below */
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
    /* threads and time */
    SCMP_SYS(futex), SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(set_tid_address), SCMP_SYS(exit),
    SCMP_SYS(exit_group), SCMP_SYS(sched_yield), SCMP_SYS(sched_getaffinity), SCMP_SYS(getcpu), SCMP_SYS(membarrier),
    SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep), SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres),
    SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(restart_syscall),
    /* events */
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait), SCMP_SYS(eventfd2), SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime), SCMP_SYS(pipe2),
    SCMP_SYS(signalfd4), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack),
    /* pycap itself */
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getppid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
    SCMP_SYS(getegid), SCMP_SYS(getrusage), SCMP_SYS(getrlimit), SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(times),
    SCMP_SYS(getrandom), SCMP_SYS(capget), SCMP_SYS(capset),
    /* other processes: read, and waited for */
    SCMP_SYS(process_vm_readv), SCMP_SYS(pidfd_open), SCMP_SYS(wait4), SCMP_SYS(waitid),
};

/* Calls that are allowed when `argument`, masked with `mask`, is `value`. */
static const struct allowed {
    int call;
    unsigned argument;
    uint64_t mask, value;
} allowed[] = {
    /* Existing files, including other processes' memory, are opened for reading only. */
    {SCMP_SYS(openat), 2, O_ACCMODE, O_RDONLY},
    {SCMP_SYS(openat), 2, O_CREAT | O_EXCL, O_CREAT | O_EXCL},
    {SCMP_SYS(mmap), 2, PROT_EXEC, 0},
    {SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
    {SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD},
    {SCMP_SYS(prctl), 0, UINT32_MAX, PR_SET_NAME},
    {SCMP_SYS(prctl), 0, UINT32_MAX, PR_SET_NO_NEW_PRIVS}, /* a thread that begins late: privileges_drop_all() */
    /* itself: --backend proc goes where a thread stands, and wants to be prompt */
    {SCMP_SYS(sched_setaffinity), 0, UINT32_MAX, 0},
    {SCMP_SYS(sched_getattr), 0, UINT32_MAX, 0},
    {SCMP_SYS(sched_setattr), 0, UINT32_MAX, 0},
    {SCMP_SYS(prlimit64), 2, UINT64_MAX, 0}, /* to read limits */
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_LOOKUP_ELEM},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_LOOKUP_BATCH},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_UPDATE_ELEM},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_DELETE_ELEM},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_GET_NEXT_KEY},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_OBJ_GET_INFO_BY_FD},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_LINK_DETACH},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, PERF_EVENT_IOC_ENABLE},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, PERF_EVENT_IOC_DISABLE},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, PERF_EVENT_IOC_RESET},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, PERF_EVENT_IOC_PERIOD},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, TCGETS}, /* isatty() */
    {SCMP_SYS(ioctl), 1, UINT32_MAX, TIOCGWINSZ},
};

static int allow(scmp_filter_ctx ctx, pid_t command)
{
    int e = 0;

    for (size_t i = 0; !e && i < sizeof plain / sizeof *plain; i++)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, plain[i], 0);
    for (size_t i = 0; !e && i < sizeof allowed / sizeof *allowed; i++)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i].call, 1,
                             SCMP_CMP(allowed[i].argument, SCMP_CMP_MASKED_EQ, allowed[i].mask, allowed[i].value));
    /* clone3() has its flags in memory, which a filter cannot read. After ENOSYS glibc uses clone(). */
    if (!e)
        e = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (!e && command > 0)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(kill), 1, SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)command));
    /* its own priority: what comes last need not be prompt */
    if (!e)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(setpriority), 2, SCMP_A0_32(SCMP_CMP_EQ, PRIO_PROCESS),
                             SCMP_A1_32(SCMP_CMP_EQ, 0));
    /* abort() */
    if (!e)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)getpid()));
    return e;
}

struct error *sandbox_enter(pid_t command)
{
    scmp_filter_ctx ctx = seccomp_init(getenv("PYCAP_SANDBOX_KILL") ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM));

    if (!ctx)
        return error_no_memory();
    int e = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
    if (!e)
        e = allow(ctx, command);
    if (!e)
        e = seccomp_load(ctx);
    seccomp_release(ctx);
    return e ? error_os(-e, "the seccomp filter cannot be installed (--no-sandbox records without it)") : NULL;
}
