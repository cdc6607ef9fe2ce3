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
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/host/procfs_task.h"

/* Calls that all processes make, whatever their arguments. */
static const int common[] = {
    /* files that are open, and what is said of others */
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(lseek), SCMP_SYS(close), SCMP_SYS(stat),
    SCMP_SYS(fstat), SCMP_SYS(lstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(getdents64),
    /* memory; what would make it executable is below */
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
    /* threads and time */
    SCMP_SYS(futex), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(sched_yield), SCMP_SYS(nanosleep),
    SCMP_SYS(clock_nanosleep), SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(restart_syscall),
    /* events */
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    /* itself */
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
    SCMP_SYS(getrandom), SCMP_SYS(capget), SCMP_SYS(capset),
};

/* Those of the reader. */
static const int reader[] = {
    /* files */
    SCMP_SYS(preadv), SCMP_SYS(statfs), SCMP_SYS(fstatfs), SCMP_SYS(access), SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getcwd), SCMP_SYS(dup), SCMP_SYS(dup2),
    SCMP_SYS(dup3), SCMP_SYS(fadvise64),
    /* threads */
    SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(set_tid_address), SCMP_SYS(sched_getaffinity), SCMP_SYS(getcpu),
    SCMP_SYS(membarrier),
    /* events */
    SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(eventfd2),
    SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime), SCMP_SYS(pipe2), SCMP_SYS(signalfd4), SCMP_SYS(sigaltstack),
    /* itself */
    SCMP_SYS(getppid), SCMP_SYS(getrusage), SCMP_SYS(getrlimit), SCMP_SYS(uname), SCMP_SYS(sysinfo), SCMP_SYS(times),
    /* other processes: read, also by one that is asked to (errand.h), and waited for */
    SCMP_SYS(process_vm_readv), SCMP_SYS(sendmsg), SCMP_SYS(recvmsg), SCMP_SYS(pidfd_open), SCMP_SYS(wait4), SCMP_SYS(waitid),
};

/* And of those that read for it: the server forks helpers, and kills them; between all of them descriptors are passed. */
static const int errands[] = {
    SCMP_SYS(clone), SCMP_SYS(kill), SCMP_SYS(socketpair),
};

/* Those of the writer. Where it may open files is for Landlock and the files' permissions to say. */
static const int writer[] = {
    SCMP_SYS(openat), SCMP_SYS(fsync), SCMP_SYS(ftruncate), SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(rename),
    SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(readlinkat), SCMP_SYS(fstatfs), SCMP_SYS(fchmod), SCMP_SYS(fchown), SCMP_SYS(flock), SCMP_SYS(umask),
    SCMP_SYS(landlock_create_ruleset), SCMP_SYS(landlock_restrict_self),
};

/* And of the process that makes maps: descriptors go to the reader. */
static const int table_maker[] = {
    SCMP_SYS(sendmsg), SCMP_SYS(recvmsg),
};

/* A call that is allowed when `argument`, masked with `mask`, is `value`. */
struct allowed {
    int call;
    unsigned argument;
    uint64_t mask, value;
};

static const struct allowed common_if[] = {
    {SCMP_SYS(mmap), 2, PROT_EXEC, 0},
    {SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
    /* Not F_SETOWN, which has signals sent to others. */
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETFD},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_SETFD},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETFL},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_SETFL},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_DUPFD},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_DUPFD_CLOEXEC},
    {SCMP_SYS(prctl), 0, UINT32_MAX, PR_SET_NO_NEW_PRIVS}, /* privileges_drop_all() */
    {SCMP_SYS(ioctl), 1, UINT32_MAX, TCGETS},              /* isatty() */
};

static const struct allowed reader_if[] = {
    /* Files, including other processes' memory, are opened for reading only, and none is created or emptied. */
    {SCMP_SYS(openat), 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY},
    {SCMP_SYS(clone), 0, CLONE_THREAD, CLONE_THREAD},
    {SCMP_SYS(prctl), 0, UINT32_MAX, PR_SET_NAME},
    /* itself: --backend proc goes where a thread stands, and wants to be prompt */
    {SCMP_SYS(sched_setaffinity), 0, UINT32_MAX, 0},
    {SCMP_SYS(sched_getattr), 0, UINT32_MAX, 0},
    {SCMP_SYS(sched_setattr), 0, UINT32_MAX, 0},
    {SCMP_SYS(sched_setscheduler), 0, UINT32_MAX, 0}, /* what comes last need not be prompt */
    {SCMP_SYS(prlimit64), 2, UINT64_MAX, 0}, /* to read limits */
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_LOOKUP_ELEM},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_LOOKUP_BATCH},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_UPDATE_ELEM},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_UPDATE_BATCH},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_DELETE_ELEM},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_MAP_GET_NEXT_KEY},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_OBJ_GET_INFO_BY_FD},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_LINK_DETACH},
    {SCMP_SYS(bpf), 0, UINT32_MAX, BPF_ITER_CREATE}, /* reads threads that sleep (bpf/sampler_sleep.h) */
    {SCMP_SYS(ioctl), 1, UINT32_MAX, PERF_EVENT_IOC_ENABLE},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, PERF_EVENT_IOC_DISABLE},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, PERF_EVENT_IOC_RESET},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, PERF_EVENT_IOC_PERIOD},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, TIOCGWINSZ},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, NS_GET_PARENT},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, NS_GET_USERNS},
    {SCMP_SYS(ioctl), 1, UINT32_MAX, NS_GET_OWNER_UID},
};

static int allow_calls(scmp_filter_ctx ctx, const int *calls, size_t count)
{
    int e = 0;

    for (size_t i = 0; !e && i < count; i++)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, calls[i], 0);
    return e;
}

static int allow_some(scmp_filter_ctx ctx, const struct allowed *some, size_t count)
{
    int e = 0;

    for (size_t i = 0; !e && i < count; i++)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, some[i].call, 1,
                             SCMP_CMP(some[i].argument, SCMP_CMP_MASKED_EQ, some[i].mask, some[i].value));
    return e;
}
#define ALLOW_CALLS(ctx, table) allow_calls(ctx, table, sizeof(table) / sizeof *(table))
#define ALLOW_SOME(ctx, table) allow_some(ctx, table, sizeof(table) / sizeof *(table))

static int allow_common(scmp_filter_ctx ctx)
{
    int e = ALLOW_CALLS(ctx, common);

    if (!e)
        e = ALLOW_SOME(ctx, common_if);
    /* abort() */
    if (!e)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)getpid()));
    return e;
}

static int allow_reader(scmp_filter_ctx ctx, pid_t command)
{
    int e = ALLOW_CALLS(ctx, reader);

    if (!e)
        e = ALLOW_SOME(ctx, reader_if);
    /* clone3() has its flags in memory, which a filter cannot read. After ENOSYS glibc uses clone(). */
    if (!e)
        e = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    if (!e && command > 0)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(kill), 1, SCMP_A0_32(SCMP_CMP_EQ, (uint32_t)command));
    /* its own priority: what comes last need not be prompt */
    if (!e)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(setpriority), 2, SCMP_A0_32(SCMP_CMP_EQ, PRIO_PROCESS),
                             SCMP_A1_32(SCMP_CMP_EQ, 0));
    return e;
}

/* A filter that allows nothing yet; NULL: out of memory. */
static scmp_filter_ctx begin(void)
{
    scmp_filter_ctx ctx = seccomp_init(getenv("PYCAP_SANDBOX_KILL") ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO(EPERM));

    if (ctx && seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1)) {
        seccomp_release(ctx);
        return NULL;
    }
    return ctx;
}

/* Installs the filter, unless making it failed with `e`. */
static struct error *end(scmp_filter_ctx ctx, int e)
{
    if (!e)
        e = seccomp_load(ctx);
    seccomp_release(ctx);
    return e ? error_os(-e, "the seccomp filter cannot be installed (--no-sandbox records without it)") : NULL;
}

struct error *sandbox_enter_reader(pid_t command)
{
    scmp_filter_ctx ctx = begin();

    if (!ctx)
        return error_no_memory();
    int e = allow_common(ctx);
    return end(ctx, e ? e : allow_reader(ctx, command));
}

struct error *sandbox_enter_errands(void)
{
    scmp_filter_ctx ctx = begin();

    if (!ctx)
        return error_no_memory();
    int e = allow_common(ctx);
    if (!e)
        e = ALLOW_CALLS(ctx, errands);
    if (!e)
        e = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1_32(SCMP_CMP_EQ, PROCFS_MAP_QUERY));
    return end(ctx, e ? e : allow_reader(ctx, -1));
}

struct error *sandbox_enter_writer(void)
{
    scmp_filter_ctx ctx = begin();

    if (!ctx)
        return error_no_memory();
    int e = allow_common(ctx);
    return end(ctx, e ? e : ALLOW_CALLS(ctx, writer));
}

struct error *sandbox_enter_table_maker(void)
{
    scmp_filter_ctx ctx = begin();

    if (!ctx)
        return error_no_memory();
    int e = allow_common(ctx);
    if (!e)
        e = ALLOW_CALLS(ctx, table_maker);
    return end(ctx, e ? e : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(bpf), 1, SCMP_A0_32(SCMP_CMP_EQ, BPF_MAP_CREATE)));
}

struct error *sandbox_enter_messenger(void)
{
    scmp_filter_ctx ctx = begin();

    if (!ctx)
        return error_no_memory();
    return end(ctx, allow_common(ctx));
}
