/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What somebody can do who has taken over one of the processes of a recording: each enters its confinement as
 * `pycap record` of root does, and then tries what would help him on. docs/privileges.md says what is left.
 */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "capture/host/privileges.h"
#include "capture/host/sandbox.h"
#include "capture/output/output_server.h"
#include "capture/output/service_manager.h"
#include "formats/base/landlock.h"

/* The folder of outputs, and one beside it, with a file of root's in it. */
static char top[32], outputs[64], others[64], secret[96], fresh[96], moved[96], output[96];
static pid_t victim; /* a process of root's */
static char victims_byte = 'v';
static int secret_fd; /* opened for reading by the one who tries */

/* ---- what is tried ---- */

static long open_as(const char *path, int flags)
{
    return syscall(SYS_openat, AT_FDCWD, path, flags, 0600);
}

static long open2_as(const char *path, uint64_t flags)
{
    struct open_how how = {.flags = flags, .mode = flags & O_CREAT ? 0600 : 0};

    return syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

static const char *of_victim(const char *name)
{
    static char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int)victim, name);
    return path;
}

static long mapped(void *at)
{
    return at == MAP_FAILED ? -1 : 0;
}

static long give_capabilities(void)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};

    return syscall(SYS_capset, &h, data);
}

static long write_victim(void)
{
    struct iovec here = {&victims_byte, 1};

    return syscall(SYS_process_vm_writev, victim, &here, 1, &here, 1, 0);
}

static long read_victim(void)
{
    char byte;
    struct iovec here = {&byte, 1}, there = {&victims_byte, 1};

    return syscall(SYS_process_vm_readv, victim, &here, 1, &there, 1, 0);
}

static long limit_victim(void)
{
    struct { uint64_t soft, hard; } none = {0, 0};

    return syscall(SYS_prlimit64, victim, RLIMIT_CPU, &none, NULL);
}

static long move_victim(void)
{
    unsigned long mask = 1;

    return syscall(SYS_sched_setaffinity, victim, sizeof mask, &mask);
}

static long start_ring(void)
{
    uint8_t parameters[128] = {0};

    return syscall(SYS_io_uring_setup, 1, parameters);
}

static long load_program(void)
{
    union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

    return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr);
}

static long start_event(void)
{
    uint64_t attr[16] = {1 | UINT64_C(128) << 32};

    return syscall(SYS_perf_event_open, attr, victim, -1, -1, 0);
}

static char *const nothing[] = {NULL};

/* A try is a function of its own, so that a table can name it. */
#define TRIES(X)                                                                                          \
    X(open_memory, "opening another process's memory to write", open_as(of_victim("mem"), O_RDWR))        \
    X(open2_memory, "the same by openat2()", open2_as(of_victim("mem"), O_RDWR))                          \
    X(open_own_memory, "opening the own memory to write", open_as("/proc/self/mem", O_RDWR))              \
    X(open2_own_memory, "the same by openat2()", open2_as("/proc/self/mem", O_RDWR))                      \
    X(core_pattern, "opening core_pattern to write", open_as("/proc/sys/kernel/core_pattern", O_WRONLY))  \
    X(core_pattern2, "the same by openat2()", open2_as("/proc/sys/kernel/core_pattern", O_WRONLY))        \
    X(write_file, "opening a file to write", open_as(secret, O_WRONLY))                                   \
    X(write_file2, "the same by openat2()", open2_as(secret, O_WRONLY))                                   \
    X(write_file_old, "the same by open()", syscall(SYS_open, secret, O_WRONLY))                          \
    X(append_file, "opening a file to append", open_as(secret, O_WRONLY | O_APPEND))                      \
    X(empty_file, "emptying a file", open_as(secret, O_RDONLY | O_TRUNC))                                 \
    X(empty_file2, "the same by openat2()", open2_as(secret, O_WRONLY | O_TRUNC))                         \
    X(truncate_file, "truncate()", truncate(secret, 0))                                                   \
    X(create_file, "creating a file", open_as(fresh, O_RDONLY | O_CREAT | O_EXCL))                        \
    X(create_file_old, "the same by creat()", syscall(SYS_creat, fresh, 0600))                            \
    X(create_file2, "the same by openat2()", open2_as(fresh, O_WRONLY | O_CREAT | O_EXCL))                \
    X(create_nameless, "creating a file without a name", open_as(others, O_TMPFILE | O_RDWR))             \
    X(create_folder, "mkdir()", mkdir(fresh, 0700))                                                       \
    X(create_device, "mknod()", mknod(fresh, S_IFCHR | 0600, 0x103))                                      \
    X(create_link, "symlink()", symlink("x", fresh))                                                      \
    X(create_second_name, "link()", link(secret, fresh))                                                  \
    X(rename_file, "rename()", rename(secret, moved))                                                     \
    X(rename_into, "renaming into the folder of outputs", rename(secret, output))                         \
    X(rename_at, "renameat2()", syscall(SYS_renameat2, AT_FDCWD, secret, AT_FDCWD, moved, 0))             \
    X(remove_file, "unlink()", unlink(secret))                                                            \
    X(remove_at, "unlinkat()", unlinkat(AT_FDCWD, secret, 0))                                             \
    X(remove_folder, "rmdir()", rmdir(others))                                                            \
    X(change_mode, "fchmod()", fchmod(secret_fd, 04755))                                                  \
    X(change_mode_of, "chmod()", syscall(SYS_chmod, secret, 04755))                                       \
    X(change_owner, "fchown()", fchown(secret_fd, 4242, 4242))                                            \
    X(change_owner_of, "chown()", chown(secret, 4242, 4242))                                              \
    X(change_attribute, "setxattr()", setxattr(secret, "user.x", "x", 1, 0))                              \
    X(open_disk, "opening a device to write", open_as("/dev/kmsg", O_WRONLY))                             \
    X(own_signals, "fcntl(F_SETOWN)", syscall(SYS_fcntl, secret_fd, F_SETOWN, victim))                    \
    X(own_signals_2, "fcntl(F_SETSIG)", syscall(SYS_fcntl, secret_fd, F_SETSIG, SIGKILL))                 \
    X(signal_victim, "kill()", syscall(SYS_kill, victim, 0))                                              \
    X(signal_thread, "tgkill()", syscall(SYS_tgkill, victim, victim, 0))                                  \
    X(trace_victim, "ptrace()", ptrace(PTRACE_ATTACH, victim, 0, 0))                                      \
    X(write_memory, "process_vm_writev()", write_victim())                                                \
    X(limit, "changing another process's limit", limit_victim())                                          \
    X(move, "moving another process", move_victim())                                                      \
    X(renice, "another process's priority", syscall(SYS_setpriority, PRIO_PROCESS, victim, 19))           \
    X(execute, "execve()", syscall(SYS_execve, "/bin/true", nothing, nothing))                            \
    X(execute_at, "execveat()", syscall(SYS_execveat, AT_FDCWD, "/bin/true", nothing, nothing, 0))        \
    X(fork_again, "fork()", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))                                      \
    X(make_code, "memory that can be executed",                                                           \
      mapped(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)))                \
    X(be_root, "setresuid(0)", syscall(SYS_setresuid, 0, 0, 0))                                           \
    X(be_root_in_files, "setfsuid(0)", syscall(SYS_setfsuid, 0))                                          \
    X(be_capable, "capabilities that were dropped", give_capabilities())                                  \
    X(use_network, "socket()", socket(AF_INET, SOCK_STREAM, 0))                                           \
    X(use_sockets, "a local socket", socket(AF_UNIX, SOCK_STREAM, 0))                                     \
    X(new_namespace, "unshare()", unshare(CLONE_NEWUSER))                                                 \
    X(mount_something, "mount()", mount("none", top, "tmpfs", 0, ""))                                     \
    X(change_root, "chroot()", chroot(top))                                                               \
    X(make_map, "a BPF map", load_program())                                                              \
    X(make_event, "perf_event_open()", start_event())                                                     \
    X(make_ring, "io_uring_setup()", start_ring())                                                        \
    X(make_memory_file, "memfd_create()", syscall(SYS_memfd_create, "x", 0))                              \
    X(handle_faults, "userfaultfd()", syscall(SYS_userfaultfd, 0))                                        \
    X(take_descriptor, "pidfd_getfd()", syscall(SYS_pidfd_getfd, 0, 0, 0))                                \
    X(open_handle, "open_by_handle_at()", syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, O_RDONLY))

#define FUNCTION(name, what, expression) \
    static long try_##name(void)         \
    {                                    \
        return expression;               \
    }
TRIES(FUNCTION)

static const struct attempt {
    const char *what;
    long (*fn)(void);
} tries[] = {
#define ROW(name, what, expression) {what, try_##name},
    TRIES(ROW)};
#define TRY_COUNT (sizeof tries / sizeof *tries)

/* ---- who tries ---- */

static int enter_reader(void)
{
    const struct privileges_need need = {.bpf_map_fd = -1};
    bool left_root;

    if (privileges_drop(&need, &left_root))
        return 100;
    if (sandbox_enter_reader(0))
        return 101;
    return left_root ? 0 : 102;
}

static int enter_writer(void)
{
    const struct output_options o = {.files = {.pattern = output, .hostname = "h"}};

    return output_server_confine(&o) ? 100 : 0;
}

static int enter_messenger(void)
{
    return service_manager_confine() ? 100 : 0;
}

#define SKIP_WITHOUT_ROOT() \
    do {                    \
        if (geteuid())      \
            skip();         \
    } while (0)

/* The sanitizers make calls of their own, so with them the writer and the messenger are built without their lists of calls. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SKIP_WITHOUT_FILTER() skip()
#else
#define SKIP_WITHOUT_FILTER() SKIP_WITHOUT_ROOT()
#endif

/* Runs `fn` in a child that has entered a confinement. Its exit status; 100 and more: it did not come to that. */
static int confined(int (*enter)(void), int (*fn)(const void *), const void *ctx)
{
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        secret_fd = open(secret, O_RDONLY);
        int why = enter();
        _exit(why ? why : fn(ctx));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* 0: it is refused, and not for another reason than that it is not allowed. */
static int attempt(const void *ctx)
{
    errno = 0;
    if (((const struct attempt *)ctx)->fn() >= 0)
        return 1;
    return errno == EPERM || errno == EACCES ? 0 : errno;
}

static void expect_refused(int (*enter)(void), const struct attempt *a)
{
    int result = confined(enter, attempt, a);

    if (result)
        fail_msg("%s is not refused: %d (%s)", a->what, result, result == 1 ? "allowed" : strerror(result));
}

/* ---- the reader ---- */

TEST(reader)
{
    SKIP_WITHOUT_ROOT();
    for (size_t i = 0; i < TRY_COUNT; i++)
        expect_refused(enter_reader, &tries[i]);
}

/* The number of the step that does not work; 0: all do. */
static int read_others(const void *ctx)
{
    char byte, text[4096];
    ssize_t n;

    (void)ctx;
    if (!geteuid() || !getuid() || !getegid() || syscall(SYS_getuid) == 65534)
        return 1;
    if (read_victim() != 1)
        return 2;
    int fd = open(secret, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &byte, 1) != 1)
        return 3;
    fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text) <= 0)
        return 4;
    fd = open(of_victim("maps"), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || (n = read(fd, text, sizeof text - 1)) <= 0)
        return 5;
    text[n] = 0;
    unsigned long start = 0, end = 0;
    char path[96], *slash = strchr(text, '/'); /* the first mapping of a file */
    while (slash && slash > text && slash[-1] != '\n')
        slash--;
    if (!slash || sscanf(slash, "%lx-%lx", &start, &end) != 2)
        return 6;
    snprintf(path, sizeof path, "/proc/%d/map_files/%lx-%lx", (int)victim, start, end);
    if (open(path, O_RDONLY | O_CLOEXEC) < 0)
        return 7;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC) < 0 ? 8 : 0;
}

/* What it is for still works. */
TEST(reader_reads)
{
    SKIP_WITHOUT_ROOT();
    assert_int_equal(confined(enter_reader, read_others, NULL), 0);
}

static int groups(const void *ctx)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];

    (void)ctx;
    while (f && fgets(line, sizeof line, f)) {
        if (!strncmp(line, "Groups:", 7))
            return line[7 + strspn(line + 7, " \t\n")] ? 1 : 0;
    }
    return 2;
}

TEST(reader_has_no_groups)
{
    gid_t one = 4;

    SKIP_WITHOUT_ROOT();
    assert_int_equal(syscall(SYS_setgroups, 1, &one), 0);
    assert_int_equal(confined(enter_reader, groups, NULL), 0);
}

/* ---- who reads for the reader ---- */

static int enter_errands(void)
{
    privileges_drop_for_errands();
    return sandbox_enter_errands() ? 101 : 0;
}

/* They fork, which is what one of them is for. */
TEST(errands)
{
    SKIP_WITHOUT_ROOT();
    for (size_t i = 0; i < TRY_COUNT; i++) {
        if (tries[i].fn != try_fork_again)
            expect_refused(enter_errands, &tries[i]);
    }
}

TEST(errands_read)
{
    SKIP_WITHOUT_ROOT();
    assert_int_equal(confined(enter_errands, read_others, NULL), 0);
    assert_int_equal(confined(enter_errands, groups, NULL), 0);
}

/* ---- the writer ---- */

/* These it may do where Landlock lets it: the files are below another folder, so only Landlock refuses them. */
static bool by_landlock(long (*fn)(void))
{
    static long (*const some[])(void) = {
        try_open_memory, try_open_own_memory, try_core_pattern, try_write_file, try_append_file, try_empty_file, try_create_file,
        try_create_nameless, try_rename_file, try_rename_into, try_rename_at, try_remove_file, try_remove_at, try_open_disk};

    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        if (some[i] == fn)
            return true;
    }
    return false;
}

/* It owns files: changing the mode of one that is open, of its own user, is among what it does. */
static bool may(long (*fn)(void))
{
    return fn == try_change_mode || fn == try_change_owner;
}

static int no_landlock(const void *ctx)
{
    (void)ctx;
    return landlock_enter(NULL, 0) ? 0 : 1;
}

static int enter_nothing(void)
{
    return 0;
}

TEST(writer)
{
    SKIP_WITHOUT_FILTER();
    bool landlock = !confined(enter_nothing, no_landlock, NULL);

    for (size_t i = 0; i < TRY_COUNT; i++) {
        if (may(tries[i].fn) || (!landlock && by_landlock(tries[i].fn)))
            continue;
        int result = confined(enter_writer, attempt, &tries[i]);
        /* A rename out of a folder that Landlock knows is refused as one between file systems. */
        if (result && result != EXDEV)
            fail_msg("%s is not refused: %d (%s)", tries[i].what, result, result == 1 ? "allowed" : strerror(result));
    }
}

static int write_outputs(const void *ctx)
{
    char other[128];
    struct stat st;

    (void)ctx;
    int fd = open(output, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1 || fsync(fd) || fchmod(fd, 0600))
        return 1;
    snprintf(other, sizeof other, "%s.new", output);
    if (rename(output, other) || stat(other, &st) || unlink(other))
        return 2;
    return read_victim() == -1 ? 0 : 3;
}

/* What it is for still works; it reads nobody. */
TEST(writer_writes)
{
    SKIP_WITHOUT_FILTER();
    assert_int_equal(confined(enter_writer, write_outputs, NULL), 0);
}

/* ---- who talks to the service manager ---- */

TEST(messenger)
{
    SKIP_WITHOUT_FILTER();
    for (size_t i = 0; i < TRY_COUNT; i++)
        expect_refused(enter_messenger, &tries[i]);
}

/* ---- the scene ---- */

static int set_up(void **state)
{
    (void)state;
    strcpy(top, "/tmp/test_confined.XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(outputs, sizeof outputs, "%s/outputs", top);
    snprintf(others, sizeof others, "%s/others", top);
    snprintf(output, sizeof output, "%s/t.bin", outputs);
    snprintf(secret, sizeof secret, "%s/secret", others);
    snprintf(fresh, sizeof fresh, "%s/fresh", others);
    snprintf(moved, sizeof moved, "%s/moved", others);
    if (mkdir(outputs, 0700) || mkdir(others, 0700))
        return -1;
    int fd = open(secret, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || write(fd, "s", 1) != 1 || close(fd))
        return -1;
    victim = fork();
    if (!victim) {
        for (;;)
            pause();
    }
    return victim > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    kill(victim, SIGKILL);
    waitpid(victim, NULL, 0);
    unlink(fresh);
    unlink(moved);
    unlink(output);
    unlink(secret);
    rmdir(outputs);
    rmdir(others);
    return rmdir(top);
}

TESTS_WITH(set_up, tear_down);
