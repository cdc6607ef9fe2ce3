/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three descriptors are open at a time: the folder, where the walk stands and the folder of that. After ".." a walk
 * that stays in its folder begins again with the parts that it had passed, since asking the kernel for a parent could
 * lead out of a folder that was moved meanwhile.
 */
#include "formats/base/open_regular.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MAX = 40 /* as the kernel has it */ };

struct walk {
    int folder, above, at;   /* `above` and `at` are -1 for the folder, or descriptors of our own */
    enum open_links links;
    const struct open_user *user; /* NULL: whoever the caller is */
    unsigned link_count;
    char last[NAME_MAX + 1]; /* the part that led from `above` to `at` */
    char passed[PATH_MAX];   /* the parts that lead to `at`, with a slash before each */
    size_t passed_len;
    char rest[2 * PATH_MAX]; /* the parts that are still to be walked */
};

/* File systems whose files are not stored anywhere. Reading some of them changes something. */
static bool is_storage(int fd)
{
    static const uint32_t others[] = {
        AUTOFS_SUPER_MAGIC, PROC_SUPER_MAGIC,  SYSFS_MAGIC,         DEBUGFS_MAGIC,       TRACEFS_MAGIC,
        SECURITYFS_MAGIC,   SELINUX_MAGIC,     SMACK_MAGIC,         CGROUP_SUPER_MAGIC,  CGROUP2_SUPER_MAGIC,
        BPF_FS_MAGIC,       PSTOREFS_MAGIC,    EFIVARFS_MAGIC,      DEVPTS_SUPER_MAGIC,  NSFS_MAGIC,
        BINFMTFS_MAGIC,     PIPEFS_MAGIC,      SOCKFS_MAGIC,        BDEVFS_MAGIC,        RDTGROUP_SUPER_MAGIC,
        0x62656570 /* configfs */, 0x19800202 /* mqueue */, 0x65735543 /* fusectl */,
    };
    struct statfs fs;

    if (fstatfs(fd, &fs))
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if ((uint32_t)fs.f_type == others[i])
            return false;
    }
    return true;
}

/* /dev is a file system of memory like others, and nothing but its place shows what it is. */
static bool is_dev(const struct stat *st)
{
    struct stat dev;

    return !stat("/dev", &dev) && st->st_dev == dev.st_dev && st->st_ino == dev.st_ino;
}

static int refuse(int fd, int why)
{
    if (fd >= 0)
        close(fd);
    errno = why;
    return -1;
}

/* Goes on from `at`, which may be -1, the folder. */
static void stand_at(struct walk *w, int at)
{
    if (w->above >= 0)
        close(w->above);
    if (w->at >= 0)
        close(w->at);
    w->above = -1;
    w->at = at;
}

static bool is_public(const struct stat *st)
{
    return S_ISLNK(st->st_mode) || (st->st_mode & (S_ISDIR(st->st_mode) ? S_IXOTH : S_IROTH));
}

/* Whether the user may go on from there: the owner of a folder may always allow it to himself. */
static bool may_search(const struct open_user *user, const struct stat *st)
{
    if (!S_ISDIR(st->st_mode) || !user->user || (user->user != OPEN_NO_USER && st->st_uid == user->user))
        return true;
    for (size_t i = 0; i < user->group_count; i++) {
        if (user->groups[i] == st->st_gid)
            return st->st_mode & S_IXGRP;
    }
    return st->st_mode & S_IXOTH;
}

/* One part, which is not refused. *is_link: it is a link. */
static int open_part(const struct walk *w, const char *part, bool *is_link)
{
    struct stat st;
    int fd = openat(w->at >= 0 ? w->at : w->folder, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return -1;
    if (fstat(fd, &st))
        return refuse(fd, errno);
    *is_link = S_ISLNK(st.st_mode);
    bool forbidden = w->links == OPEN_PUBLIC ? !is_public(&st)
                                             : w->links == OPEN_OUTSIDE && !strcmp(part, "dev") && is_dev(&st);
    forbidden |= w->user && !may_search(w->user, &st);
    return is_storage(fd) && !forbidden ? fd : refuse(fd, EACCES);
}

/* Goes on to the part that `fd` is. */
static bool pass(struct walk *w, const char *part, int fd)
{
    size_t space = sizeof w->passed - w->passed_len;
    int len = w->links == OPEN_OUTSIDE ? 0 : snprintf(w->passed + w->passed_len, space, "/%s", part);

    if (len < 0 || (size_t)len >= space) {
        refuse(fd, ENAMETOOLONG);
        return false;
    }
    w->passed_len += (size_t)len;
    if (w->above >= 0)
        close(w->above);
    w->above = w->at;
    w->at = fd;
    strcpy(w->last, part);
    return true;
}

/* Puts the link's target in front of the rest. */
static bool follow(struct walk *w, int fd)
{
    char target[PATH_MAX], rest[sizeof w->rest];
    ssize_t len = readlinkat(fd, "", target, sizeof target - 1);

    close(fd);
    if (len <= 0 || w->links == OPEN_NO_LINKS || ++w->link_count > LINKS_MAX) {
        errno = ELOOP;
        return false;
    }
    target[len] = 0;
    memcpy(rest, w->rest, sizeof rest);
    if (snprintf(w->rest, sizeof w->rest, "%s/%s", target, rest) >= (int)sizeof w->rest) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (target[0] != '/')
        return true;
    w->passed_len = 0;
    stand_at(w, w->links == OPEN_OUTSIDE ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1);
    return w->links != OPEN_OUTSIDE || w->at >= 0;
}

/* Goes to the parent, wherever that is. */
static bool go_outside(struct walk *w)
{
    bool is_link;
    int fd = open_part(w, "..", &is_link);

    if (fd >= 0)
        stand_at(w, fd);
    return fd >= 0;
}

/* Goes to the parent: walks the parts before the last one again, none of which was a link. */
static bool go_up(struct walk *w)
{
    char again[sizeof w->passed];

    if (w->links == OPEN_OUTSIDE)
        return go_outside(w);
    while (w->passed_len && w->passed[w->passed_len - 1] != '/')
        w->passed_len--;
    if (w->passed_len)
        w->passed_len--;
    memcpy(again, w->passed, w->passed_len);
    again[w->passed_len] = 0;
    stand_at(w, -1);
    w->passed_len = 0;
    for (char *save, *part = strtok_r(again, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
        bool is_link;
        int fd = open_part(w, part, &is_link);
        if (fd >= 0 && is_link)
            fd = refuse(fd, ELOOP);
        if (fd < 0 || !pass(w, part, fd))
            return false;
    }
    return true;
}

/* Walks all parts of the rest. */
static bool walk(struct walk *w)
{
    while (w->rest[0]) {
        char part[NAME_MAX + 1];
        size_t slashes = strspn(w->rest, "/"), len = strcspn(w->rest + slashes, "/");
        bool is_link;
        if (len > NAME_MAX) {
            errno = ENAMETOOLONG;
            return false;
        }
        memcpy(part, w->rest + slashes, len);
        part[len] = 0;
        memmove(w->rest, w->rest + slashes + len, strlen(w->rest + slashes + len) + 1);
        if (!len || !strcmp(part, "."))
            continue;
        if (!strcmp(part, "..")) {
            if (!go_up(w))
                return false;
            continue;
        }
        int fd = open_part(w, part, &is_link);
        if (fd < 0 || !(is_link ? follow(w, fd) : pass(w, part, fd)))
            return false;
    }
    return true;
}

/* Walks to `path`. False, and nothing is left open: errno says why. */
static bool walk_to(struct walk *w, int folder, const char *path, enum open_links links, const struct open_user *user)
{
    *w = (struct walk){.folder = folder, .above = -1, .at = -1, .links = links, .user = user};
    if (strlen(path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    strcpy(w->rest, path);
    if (walk(w))
        return true;
    int why = errno;
    stand_at(w, -1);
    errno = why;
    return false;
}

/* What the walk ended at; the rest of it is closed. */
static int take(struct walk *w)
{
    int fd = w->at >= 0 ? w->at : fcntl(w->folder, F_DUPFD_CLOEXEC, 0), why = errno;

    w->at = -1;
    stand_at(w, -1);
    errno = why;
    return fd;
}

int open_path_of(int folder, const char *path, enum open_links links, const struct open_user *user)
{
    struct walk w;

    return walk_to(&w, folder, path, links, user) ? take(&w) : -1;
}

int open_path(int folder, const char *path, enum open_links links)
{
    return open_path_of(folder, path, links, NULL);
}

static int only_regular(int fd)
{
    struct stat st;

    return fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode)) ? fd : refuse(fd, EACCES);
}

int open_regular_path(int folder, const char *path, enum open_links links)
{
    return only_regular(open_path(folder, path, links));
}

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

int open_regular_reopen(int path_fd)
{
    struct stat st;
    char name[32];

    if (path_fd < 0)
        return -1;
    if (fstat(path_fd, &st) || !S_ISREG(st.st_mode) || !is_storage(path_fd))
        return refuse(path_fd, EACCES);
    snprintf(name, sizeof name, "/proc/self/fd/%d", path_fd);
    int fd = open(name, OPEN_FLAGS), why = errno;
    close(path_fd);
    errno = why;
    return fd;
}

static bool is_proc_missing(void)
{
    struct stat st;

    return lstat("/proc/self/fd", &st) && errno == ENOENT;
}

/* Opens what the walk ended at by its name, and keeps it if it is what was looked at. */
static int open_last(const struct walk *w)
{
    struct stat looked, opened;

    if (w->at < 0 || fstat(w->at, &looked) || !S_ISREG(looked.st_mode))
        return refuse(-1, EACCES);
    int fd = openat(w->above >= 0 ? w->above : w->folder, w->last, OPEN_FLAGS | O_NOFOLLOW);
    if (fd < 0)
        return -1;
    bool same = !fstat(fd, &opened) && opened.st_dev == looked.st_dev && opened.st_ino == looked.st_ino;
    return same ? fd : refuse(fd, ENOENT);
}

int open_regular(int folder, const char *path, enum open_links links)
{
    struct walk w;

    if (!walk_to(&w, folder, path, links, NULL))
        return -1;
    if (!is_proc_missing())
        return open_regular_reopen(take(&w));
    int fd = open_last(&w), why = errno;
    stand_at(&w, -1);
    errno = why;
    return fd;
}
