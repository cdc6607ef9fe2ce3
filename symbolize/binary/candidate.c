/* SPDX-License-Identifier: Apache-2.0 */
/* The walk is ours, step by step, because the kernel's would enter automounts and follow the links of /proc. */
#include "symbolize/binary/candidate.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MAX = 40 }; /* as in the kernel */

struct walk {
    int at;              /* O_PATH, what the steps so far led to */
    struct stat st;      /* of it */
    unsigned depth;      /* folders below the one that the walk began in */
    unsigned link_count; /* links followed */
    bool stay_below;
    char rest[PATH_MAX]; /* what is left of the path; begins with no "/" */
};

/* File systems whose files are not bytes on a disk, and those that fetch what is asked for. */
static bool is_made_up(int fd)
{
    static const uint32_t types[] = {
        PROC_SUPER_MAGIC, SYSFS_MAGIC, AUTOFS_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC, SECURITYFS_MAGIC,
        CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC, PSTOREFS_MAGIC, EFIVARFS_MAGIC, DEVPTS_SUPER_MAGIC,
        BINFMTFS_MAGIC, NSFS_MAGIC,
    };
    struct statfs fs;

    if (fstatfs(fd, &fs))
        return true;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if ((uint32_t)fs.f_type == types[i])
            return true;
    }
    return false;
}

/* /dev is a file system of memory like others, and nothing but its place shows what it is. */
static bool is_dev(const struct stat *st)
{
    struct stat dev;

    return !stat("/dev", &dev) && st->st_dev == dev.st_dev && st->st_ino == dev.st_ino;
}

/* Puts `text` before the rest of the path. */
static bool prepend(struct walk *w, const char *text)
{
    char joined[PATH_MAX];
    int n = snprintf(joined, sizeof joined, "%s/%s", text, w->rest);

    if (n < 0 || (size_t)n >= sizeof joined)
        return false;
    const char *from = joined + strspn(joined, "/");
    memmove(w->rest, from, strlen(from) + 1);
    return true;
}

/* Goes on from `fd`, which may be -1; false: that is no place to go on from. */
static bool enter(struct walk *w, int fd)
{
    dev_t before = w->st.st_dev;

    if (fd < 0)
        return false;
    close(w->at);
    w->at = fd;
    /* A file system has one type: it needs a look only where another begins. */
    return !fstat(fd, &w->st) && (w->st.st_dev == before || !is_made_up(fd));
}

static bool follow(struct walk *w, int link)
{
    char target[PATH_MAX];
    ssize_t n = readlinkat(link, "", target, sizeof target - 1);

    close(link);
    if (n <= 0 || ++w->link_count > LINKS_MAX)
        return false;
    target[n] = 0;
    if (*target == '/') {
        if (w->stay_below || !enter(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)))
            return false;
        w->depth = 0;
    }
    return prepend(w, target);
}

static bool leave_folder(struct walk *w)
{
    if (!w->depth && w->stay_below)
        return false;
    w->depth -= w->depth > 0;
    return enter(w, openat(w->at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Takes the first part of the rest. */
static bool step(struct walk *w)
{
    char name[NAME_MAX + 1];
    size_t len = strcspn(w->rest, "/");
    struct stat st;

    if (len > NAME_MAX)
        return false;
    memcpy(name, w->rest, len);
    name[len] = 0;
    const char *rest = w->rest + len;
    rest += strspn(rest, "/");
    memmove(w->rest, rest, strlen(rest) + 1);
    if (!strcmp(name, "."))
        return true;
    if (!strcmp(name, ".."))
        return leave_folder(w);
    /* As the last part of a path a name starts no automount. What is one, or lies in one, is not entered. */
    int fd = openat(w->at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &st) && S_ISLNK(st.st_mode))
        return follow(w, fd);
    w->depth++;
    return enter(w, fd) && (strcmp(name, "dev") || !is_dev(&w->st));
}

/* By the descriptor: the file that was looked at, even if its path leads to another by now. */
static int open_regular(const struct walk *w)
{
    char self[32];

    if (!S_ISREG(w->st.st_mode))
        return -1;
    snprintf(self, sizeof self, "/proc/self/fd/%d", w->at);
    return open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

int candidate_open(const char *path, size_t named_bytes, bool stay_below)
{
    struct walk w = {.stay_below = stay_below};
    char named[PATH_MAX];

    if (named_bytes >= sizeof named || strlen(path) >= sizeof w.rest)
        return -1;
    snprintf(named, sizeof named, "%.*s", (int)named_bytes, path);
    const char *rest = path + named_bytes;
    const char *start = named_bytes ? named : *path == '/' ? "/" : ".";
    strcpy(w.rest, rest + strspn(rest, "/"));
    w.at = open(start, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w.at < 0)
        return -1;
    /* A folder that the user named may lie anywhere, such as in /proc/PID/root. */
    bool found = !fstat(w.at, &w.st) && (named_bytes || !is_made_up(w.at));
    while (found && *w.rest)
        found = step(&w);
    int fd = found ? open_regular(&w) : -1;
    close(w.at);
    return fd;
}
