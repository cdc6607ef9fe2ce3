/* SPDX-License-Identifier: Apache-2.0 */
/* What the filter of system calls lets through and what it refuses, tried in children. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/host/privileges.h"
#include "capture/host/sandbox.h"

STARTS_THREADS;

static char file[] = "/tmp/pycap-sandbox-XXXXXX";
static char fresh[64]; /* a name that no file has */

static int make_file(void **state)
{
    int fd = mkstemp(file);

    (void)state;
    if (fd < 0 || write(fd, "x", 1) != 1)
        return -1;
    snprintf(fresh, sizeof fresh, "%s.new", file);
    return close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file);
}

TESTS_WITH(make_file, remove_file);

/* The exit status of `fn` in a child that has entered the filter; 100 and more: it did not come to that. */
static int held(int (*fn)(void))
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
            _exit(100);
        struct error *err = sandbox_enter_reader(getppid());
        _exit(err ? 101 : fn());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* 0: refused with EPERM; 1: it went through; else errno. */
static int refused(long result)
{
    return result != -1 ? 1 : errno == EPERM ? 0 : errno;
}

static int try_exec(void)
{
    char *argv[] = {"true", NULL};

    return refused(execv("/bin/true", argv));
}

static int try_fork(void)
{
    return refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static int try_vfork(void)
{
    return refused(syscall(SYS_clone, SIGCHLD | CLONE_VM, 0, 0, 0, 0));
}

static int try_clone3(void)
{
    long result = syscall(SYS_clone3, NULL, 0);

    return result == -1 && errno == ENOSYS ? 0 : 1;
}

static int try_socket(void)
{
    return refused(socket(AF_INET, SOCK_STREAM, 0));
}

static int try_ptrace(void)
{
    return refused(ptrace(PTRACE_TRACEME, 0, 0, 0));
}

static int try_memory_of_others(void)
{
    char byte = 0;
    struct iovec here = {&byte, 1};

    return refused(process_vm_writev(getpid(), &here, 1, &here, 1, 0));
}

static int try_write_open(void)
{
    return refused(open(file, O_WRONLY));
}

static int try_truncate(void)
{
    return refused(open(file, O_RDWR | O_CREAT | O_TRUNC, 0600));
}

static int try_executable_mmap(void)
{
    return refused((long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static int try_executable_mprotect(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return page == MAP_FAILED ? 99 : refused(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

static int try_bpf_load(void)
{
    union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER};

    /* Without instructions it is EINVAL or EFAULT where it is let through to one who may load. */
    return refused(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr));
}

static int try_bpf_map(void)
{
    union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

    return refused(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}

static int try_kill_others(void)
{
    return refused(kill(1, 0));
}

static int try_priority_of_others(void)
{
    int own = setpriority(PRIO_PROCESS, 0, 19);

    return own ? 98 : refused(setpriority(PRIO_PROCESS, (id_t)getppid(), 19));
}

static int try_typing(void)
{
    return refused(syscall(SYS_ioctl, 0, 0x5412 /* TIOCSTI */, "x"));
}

static int try_limits(void)
{
    struct { uint64_t soft, hard; } none = {0, 0};

    return refused(syscall(SYS_prlimit64, 0, 4 /* RLIMIT_CORE */, &none, NULL));
}

TEST(refused)
{
    static const struct {
        const char *what;
        int (*fn)(void);
    } tries[] = {
        {"execve", try_exec}, {"fork", try_fork}, {"vfork", try_vfork}, {"clone3", try_clone3}, {"socket", try_socket},
        {"ptrace", try_ptrace}, {"process_vm_writev", try_memory_of_others}, {"open to write", try_write_open},
        {"open and truncate", try_truncate}, {"executable mmap", try_executable_mmap},
        {"executable mprotect", try_executable_mprotect}, {"BPF program", try_bpf_load}, {"BPF map", try_bpf_map},
        {"kill", try_kill_others}, {"renice", try_priority_of_others}, {"TIOCSTI", try_typing}, {"set a limit", try_limits},
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        int result = held(tries[i].fn);
        if (result)
            fail_msg("%s is not refused: %d", tries[i].what, result);
    }
}

static void *add_one(void *number)
{
    /* As tables.c's worker does, which may come to it when the filter is there already. */
    privileges_drop_all();
    *(int *)number += !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return NULL;
}

/* What pycap does while it records; the number of the step that was refused. */
static int work(void)
{
    pthread_t thread;
    int number = 0, fd;
    char byte;

    if (pthread_create(&thread, NULL, add_one, &number) || pthread_join(thread, NULL) || number != 1)
        return 1;
    if ((fd = open(file, O_RDONLY | O_CLOEXEC)) < 0 || read(fd, &byte, 1) != 1 || close(fd))
        return 2;
    void *big = malloc(64 << 20);
    if (!big)
        return 4;
    free(big);
    struct iovec here = {&byte, 1}, there = {&number, 1};
    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1)
        return 5;
    if (kill(getppid(), 0))
        return 6;
    if (isatty(0) < 0)
        return 7;
    return 0;
}

TEST(allowed)
{
    assert_int_equal(held(work), 0);
}

static void *wait_for_filter(void *at)
{
    while (!__atomic_load_n((int *)at, __ATOMIC_ACQUIRE))
        sched_yield();
    *(int *)at = refused(socket(AF_INET, SOCK_STREAM, 0)) ? 3 : 2;
    return NULL;
}

/* Threads that are there already are held, too. */
TEST(threads)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        pthread_t thread;
        int at = 0;
        if (pthread_create(&thread, NULL, wait_for_filter, &at) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
            _exit(100);
        if (sandbox_enter_reader(0))
            _exit(101);
        __atomic_store_n(&at, 1, __ATOMIC_RELEASE);
        pthread_join(thread, NULL);
        _exit(at == 2 ? 0 : at);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

TEST(missing)
{
    struct host h = {.cap_sys_ptrace = true, .cap_dac_read_search = true, .cap_sys_nice = true, .perf_event_paranoid = 2};
    char *names = privileges_missing(&h);

    assert_string_equal(names, "CAP_CHECKPOINT_RESTORE CAP_SYSLOG");
    free(names);
    /* Kernel symbols are there for everybody. */
    h.perf_event_paranoid = 1;
    names = privileges_missing(&h);
    assert_string_equal(names, "CAP_CHECKPOINT_RESTORE");
    free(names);
    h.kptr_restrict = 1;
    h.cap_syslog = h.cap_checkpoint_restore = true;
    assert_null(privileges_missing(&h));
    h.cap_sys_nice = false;
    names = privileges_missing(&h);
    assert_string_equal(names, "CAP_SYS_NICE");
    free(names);

    static const struct {
        bool bpf, perfmon;
        const char *text;
    } cases[] = {{false, true, "CAP_BPF is missing"},
                 {true, false, "CAP_PERFMON is missing"},
                 {false, false, "CAP_BPF and CAP_PERFMON are missing"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        h.cap_bpf = cases[i].bpf;
        h.cap_perfmon = cases[i].perfmon;
        struct error *err = privileges_check(&h);
        assert_non_null(err);
        assert_int_equal(err->code, ERROR_PERMISSION);
        assert_non_null(strstr(error_text(err), cases[i].text));
        assert_non_null(strstr(error_text(err), "setcap cap_bpf,cap_perfmon"));
        assert_non_null(strstr(error_text(err), "AmbientCapabilities=CAP_BPF CAP_PERFMON"));
        error_destroy(err);
    }
    h.cap_bpf = h.cap_perfmon = true;
    assert_null(privileges_check(&h));
}
