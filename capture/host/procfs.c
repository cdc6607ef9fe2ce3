/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of /proc are read whole, then parsed; a process may be gone at any time. */
#include "capture/host/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "capture/host/errand.h"
#include "capture/host/procfs_calls.h"
#include "capture/host/procfs_task.h"
#include "capture/host/root.h"
#include "formats/base/clock.h"
#include "formats/base/open_regular.h"
#include "formats/elf/identity.h"

struct error *procfs_read_open(int fd, const char *path, char **text, size_t *len_bytes)
{
    size_t cap = 16384, len = 0;

    char *buf = malloc(cap + 1);
    while (buf) {
        ssize_t n = read(fd, buf + len, cap - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int e = errno;
            free(buf);
            return error_file(e, path, "cannot be read");
        }
        if (n == 0)
            break;
        len += (size_t)n;
        if (len == cap) {
            char *more = cap < SIZE_MAX / 4 ? realloc(buf, cap * 2 + 1) : NULL;
            if (!more)
                free(buf);
            buf = more;
            cap *= 2;
        }
    }
    if (!buf)
        return error_no_memory();
    buf[len] = 0;
    *text = buf;
    if (len_bytes)
        *len_bytes = len;
    return NULL;
}

struct error *procfs_read(const char *path, char **text, size_t *len_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_file(errno, path, "cannot be opened");
    struct error *err = procfs_read_open(fd, path, text, len_bytes);
    close(fd);
    return err;
}

static struct error *numbers_in(const char *dir, struct procfs_pids *out)
{
    *out = (struct procfs_pids){0};
    DIR *d = opendir(dir);
    if (!d)
        return error_file(errno, dir, "cannot be listed");
    for (struct dirent *e; (e = readdir(d));) {
        char *rest;
        long n = strtol(e->d_name, &rest, 10);
        if (*rest || n <= 0 || n > INT_MAX)
            continue;
        if (!VEC_PUSH(&out->list, (pid_t)n)) {
            VEC_DEINIT(&out->list);
            closedir(d);
            return error_no_memory();
        }
    }
    closedir(d);
    return NULL;
}

struct error *procfs_pids(struct procfs_pids *out)
{
    return numbers_in("/proc", out);
}

struct error *procfs_threads(pid_t pid, struct procfs_pids *out)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/task", pid);
    return numbers_in(path, out);
}

struct error *procfs_status(pid_t pid, struct procfs_status *out)
{
    char path[64], *text;

    *out = (struct procfs_status){0};
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    TRY(procfs_read(path, &text, NULL));
    struct procfs_stat stat;
    bool parsed = procfs_parse_stat(text, &stat);
    free(text);
    if (!parsed)
        return error_at(ERROR_FORMAT, path, 0, "does not look like a process's status");
    memcpy(out->comm, stat.comm, sizeof out->comm);
    out->parent_tgid = stat.parent_tgid;
    out->start_ticks = stat.start_ticks;

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    TRY(procfs_read(path, &text, NULL));
    out->ns_tgid = procfs_last_number(text, "NStgid:");
    struct procfs_uids uids;
    out->uid = procfs_parse_uids(text, &uids) ? uids.effective : PROCFS_UID_UNKNOWN;
    free(text);
    return NULL;
}

bool procfs_comm(pid_t pid, pid_t tid, char out[17])
{
    char path[64], *text;
    size_t len;

    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
    struct error *err = procfs_read(path, &text, &len);
    if (err) {
        error_destroy(err);
        return false;
    }
    if (len && text[len - 1] == '\n')
        text[len - 1] = 0;
    snprintf(out, 17, "%.16s", text);
    free(text);
    return true;
}

uint64_t procfs_namespace(pid_t pid, const char *name)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, name);
    return stat(path, &st) ? 0 : st.st_ino;
}

char *procfs_cgroups(pid_t pid)
{
    char path[64], *text;

    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    struct error *err = procfs_read(path, &text, NULL);
    bool failed = err;
    error_destroy(err);
    return failed ? NULL : text;
}

char *procfs_cgroup(pid_t pid)
{
    char *text = procfs_cgroups(pid);

    if (!text)
        return NULL;
    char *found = procfs_cgroup_in(text, false);
    free(text);
    return found;
}

/* The path in a line "4:cpu,memory:/path" if it is of that hierarchy; NULL: it is not. */
static const char *path_in_hierarchy(const char *line, const char *hierarchy)
{
    const char *name = strchr(line, ':'), *path = name ? strchr(name + 1, ':') : NULL;
    size_t len = strlen(hierarchy);

    for (const char *at = path ? name : NULL; at && at < path; at = strpbrk(at + 1, ",:")) {
        if (!strncmp(at + 1, hierarchy, len) && strchr(",:", at[1 + len]))
            return path + 1;
    }
    return NULL;
}

/* The path in that hierarchy, up to the end of its line; NULL: there is none. */
static const char *find_path(const char *text, const char *hierarchy)
{
    const char *path = NULL;

    for (const char *line = text; *line && !path; line += strcspn(line, "\n"), line += *line == '\n')
        path = path_in_hierarchy(line, hierarchy);
    return path;
}

char *procfs_cgroup_in(const char *text, bool unified)
{
    const char *path = find_path(text, ""), *named = find_path(text, "name=systemd");
    bool at_root = named && strcspn(named, "\n") == 1;

    if (!path || (!unified && named && !at_root))
        path = named ? named : path;
    if (!path)
        path = find_path(text, "memory");
    return path ? strndup(path, strcspn(path, "\n")) : NULL;
}

/* Longer ones are cut: a trace is no archive of shell scripts. */
#define CMDLINE_MAX 4096

char *procfs_cmdline(pid_t pid)
{
    char *text = malloc(CMDLINE_MAX + 1);
    size_t len = text ? procfs_arguments(pid, text, CMDLINE_MAX + 1) : 0;

    if (!len) {
        free(text);
        return NULL;
    }
    while (len && !text[len - 1])
        len--;
    text[len] = 0;
    for (size_t i = 0; i < len; i++)
        text[i] = text[i] ? text[i] : ' ';
    return text;
}

size_t procfs_arguments(pid_t pid, char *out, size_t size)
{
    char path[64];
    size_t len = 0;
    ssize_t n = 0;

    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int fd = procfs_call_open(pid, path);
    while (fd >= 0 && len < size - 1 && (n = procfs_call_read(pid, fd, out + len, size - 1 - len)) > 0)
        len += (size_t)n;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        len = 0;
    out[len] = 0;
    return len;
}

static char *target_of(pid_t pid, const char *name)
{
    char path[64], target[PATH_MAX];

    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n <= 0)
        return NULL;
    target[n] = 0;
    return strdup(target);
}

char *procfs_exe(pid_t pid)
{
    return target_of(pid, "exe");
}

char *procfs_folder(pid_t pid)
{
    return target_of(pid, "cwd");
}

bool procfs_root_is_closed(pid_t pid)
{
    char link[64], root[1];

    snprintf(link, sizeof link, "/proc/%d/root", pid);
    return readlink(link, root, sizeof root) < 0 && (errno == EACCES || errno == EPERM);
}

/*
 * /proc prints the paths of a process in a plain chroot as seen from here. Otherwise what is not in the process's root
 * would be another file. Of one that has gone nobody knows where it was: the file has to prove itself.
 */
static bool seen_from_here(pid_t pid, const char *path)
{
    char link[64], root[PATH_MAX];

    snprintf(link, sizeof link, "/proc/%d/root", pid);
    ssize_t n = readlink(link, root, sizeof root);
    if (n < 0)
        return errno == ENOENT || errno == ESRCH;
    return procfs_namespace(pid, "mnt") == procfs_namespace(getpid(), "mnt") && !strncmp(path, root, (size_t)n) &&
           (path[n] == '/' || n == 1);
}

bool procfs_may_be_file(const struct stat *st, const struct procfs_file *file)
{
    bool same_device = st->st_dev == makedev(file->device_major, file->device_minor);

    return !file->inode || (same_device ? st->st_ino == file->inode : !major(st->st_dev));
}

/* Whether a file was created after it is said to have been mapped: with the inode of one that was removed. */
static bool is_too_new(int fd, const struct procfs_file *file)
{
    struct statx sx;

    if (!file->mapped_ns || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BTIME, &sx) ||
        !(sx.stx_mask & STATX_BTIME))
        return false;
    uint64_t born_ns = (uint64_t)sx.stx_btime.tv_sec * NS_PER_S + sx.stx_btime.tv_nsec;
    return born_ns > clock_ns(CLOCK_REALTIME) - now_ns() + file->mapped_ns;
}

static bool has_inode(int fd, const struct procfs_file *file)
{
    struct stat st;

    /* Equal devices are one file system: those that stat() makes up are nobody else's. */
    return file->inode && !fstat(fd, &st) && st.st_ino == file->inode &&
           st.st_dev == makedev(file->device_major, file->device_minor) && !is_too_new(fd, file);
}

bool procfs_is_file(int fd, const char *path, const struct procfs_file *file)
{
    struct elf_identity id = {0};
    struct elf_file f;

    if (!file->build_id_len)
        return has_inode(fd, file);
    struct error *err = elf_file_open(fd, path, NULL, &f);
    if (!err)
        err = elf_identity_of_headers(&f, &id);
    bool same = !err && elf_identity_is(&id, ELF_ID_BUILD_ID, file->build_id, file->build_id_len);
    error_destroy(err);
    elf_identity_deinit(&id);
    elf_file_close(&f);
    return same;
}

bool procfs_reads_everything(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    return syscall(SYS_capget, &header, data) ||
           (data[0].effective & (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH));
}

/* Whether the process has our user id. Then it can read what we can, unless we have capabilities besides. */
static bool is_ours(pid_t pid)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof path, "/proc/%d", pid);
    return !stat(path, &st) && st.st_uid == geteuid();
}

/*
 * Opens what lies at a mapping's path, given as an O_PATH descriptor. The process may have put another file there since,
 * one that it cannot read itself, so it has to be proven that it is the one that was mapped. A build ID is no proof
 * against somebody who copied it from the file that he wants to have read.
 */
static int open_proven(int path_fd, const char *path, const struct procfs_file *file, bool proof)
{
    if (path_fd >= 0 && proof && file->inode && procfs_reads_everything() && !has_inode(path_fd, file)) {
        close(path_fd);
        return -1;
    }
    int fd = open_regular_reopen(path_fd);
    if (fd >= 0 && proof && !procfs_is_file(fd, path, file)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The process may have mapped another file there since. */
static int open_mapped(const char *name, const struct procfs_file *file)
{
    int fd = open(name, O_PATH | O_CLOEXEC);
    struct stat st;

    if (fd >= 0 && !fstat(fd, &st) && !procfs_may_be_file(&st, file)) {
        close(fd);
        return -1;
    }
    return open_regular_reopen(fd);
}

/* What is asked of another process: the members of struct procfs_file, and where to look. */
struct open_call {
    struct procfs_file file;
    uint8_t build_id[64];
    pid_t root; /* 0: our own */
    bool proof;
    char path[PATH_MAX]; /* as much of it as is used */
};

static void run_open_mapped(void *bytes, size_t size, int *fd)
{
    struct open_call *c = bytes;

    (void)size;
    *fd = open_mapped(c->path, &c->file);
}

static void run_open_proven(void *bytes, size_t size, int *fd)
{
    struct open_call *c = bytes;

    (void)size;
    c->file.build_id = c->build_id;
    *fd = open_proven(root_find(c->root, c->path), c->path, &c->file, c->proof);
}

static int open_by(bool (*errand)(pid_t pid, errand_fn run, void *bytes, size_t size, int *fd), pid_t pid, errand_fn run,
                   struct open_call *c, const char *path)
{
    size_t len = strlen(path) + 1;
    int fd = -1;

    if (len > sizeof c->path)
        return -1;
    memcpy(c->path, path, len);
    return errand(pid, run, c, offsetof(struct open_call, path) + len, &fd) ? fd : -1;
}

int procfs_open_mapping(pid_t pid, uint64_t start, uint64_t end, const char *path, const struct procfs_file *file)
{
    struct open_call c;
    char name[96];
    int fd = -1;

    c.file = *file;
    c.file.build_id_len = file->build_id_len < sizeof c.build_id ? file->build_id_len : 0;
    memcpy(c.build_id, file->build_id_len ? file->build_id : c.build_id, c.file.build_id_len);
    if (end > start) {
        snprintf(name, sizeof name, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start, end);
        fd = open_by(errand_run, pid, run_open_mapped, &c, name);
    }
    if (fd >= 0 || path[0] != '/')
        return fd;
    bool closed = procfs_root_is_closed(pid);
    c.proof = closed || procfs_reads_everything() || !is_ours(pid);
    c.root = pid;
    fd = open_by(errand_run_long, -pid, run_open_proven, &c, path);
    if (fd < 0 && (closed || seen_from_here(pid, path))) {
        c.root = 0;
        fd = open_by(errand_run_long, -pid, run_open_proven, &c, path);
    }
    return fd;
}

bool procfs_lacks_mapping(pid_t pid, uint64_t start, uint64_t end)
{
    char name[96];
    struct stat st;
    int folder_len = snprintf(name, sizeof name, "/proc/%d/map_files", pid);

    snprintf(name + folder_len, sizeof name - (size_t)folder_len, "/%" PRIx64 "-%" PRIx64, start, end);
    if (!procfs_call_lstat(pid, name, &st) || errno != ENOENT)
        return false;
    name[folder_len] = 0; /* the kernel may have no such folder, and the process may have ended */
    return !lstat(name, &st);
}

static uint64_t own_kib(const char *path, const char *name)
{
    size_t len = strlen(name);
    uint64_t kib = 0;
    char *text;
    size_t text_len;
    struct error *err = procfs_read(path, &text, &text_len);

    if (err) {
        error_destroy(err);
        return 0;
    }
    for (char *line = text; line && *line && !kib; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (!strncmp(line, name, len))
            kib = strtoull(line + len, NULL, 10);
    }
    free(text);
    return kib * 1024;
}

uint64_t procfs_own_resident(void)
{
    /* From 6.2 on what statm says is off by some pages for each CPU; this is counted. */
    return own_kib("/proc/self/smaps_rollup", "Rss:");
}

uint64_t procfs_own_resident_most(void)
{
    /* getrusage() has the most that the caller of exec() had, too. */
    return own_kib("/proc/self/status", "VmHWM:");
}
