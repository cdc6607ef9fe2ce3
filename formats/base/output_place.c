/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to an output is walked part by part, each in a descriptor of the folder before it, so that nobody can change what was
 * passed. openat2() could refuse all links, but /tmp, /var/run or a user's own may be one, and it cannot tell whose a link is.
 *
 * What lies there is looked at before it is opened, because opening a device may have an effect, and again afterwards.
 */
#include "formats/base/output_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/vfs.h>
#include <unistd.h>

struct error *output_place_judge(const char *path, const struct stat *st, enum output_place *out)
{
    uid_t owner;
    gid_t group;

    output_owner(&owner, &group);
    bool ours = st->st_uid == geteuid() || st->st_uid == owner;

    switch (st->st_mode & S_IFMT) {
    case S_IFLNK:
        return error_path(ERROR_PERMISSION, path, "is a symbolic link, which an output does not follow: name the file itself");
    case S_IFDIR:
        return error_file(EISDIR, path, "cannot be opened for writing");
    case S_IFSOCK:
        return error_file(ENXIO, path, "cannot be opened for writing");
    case S_IFREG:
        if (st->st_nlink > 1)
            return error_path(ERROR_PERMISSION, path,
                              "has another name (a hard link) and is not overwritten: remove it, or name another file");
        *out = OUTPUT_REGULAR;
        break;
    default:
        ours |= !st->st_uid;
        *out = OUTPUT_STREAM;
    }
    if (!ours)
        return error_path(ERROR_PERMISSION, path,
                          "belongs to another user and is not written to: remove it, or name another file");
    return NULL;
}

/* ---- the way ---- */

enum { LINKS_MAX = 40 /* as the kernel has it */ };

/* A walk to the folder of a path. */
struct way {
    const char *path;      /* as it was given, for messages */
    size_t passed_len;     /* of it: what was walked before the first link, and that link */
    int at;
    unsigned link_count;
    char rest[2 * PATH_MAX]; /* what is still to be walked */
};

/* Root, we, who called sudo, and who owns "/": in a user namespace root may have no number of its own. */
static bool is_trusted(uid_t user)
{
    struct stat st;
    uid_t owner;
    gid_t group;

    output_owner(&owner, &group);
    return !user || user == geteuid() || user == owner || (!stat("/", &st) && st.st_uid == user);
}

static bool is_our_group(gid_t group)
{
    uid_t owner;
    gid_t of_owner;

    output_owner(&owner, &of_owner);
    return !group || group == getegid() || group == of_owner;
}

/*
 * Only whom we trust may have put the link there, or may put another one in its place. A link with two names may have got the
 * second one from anybody.
 */
static bool is_trusted_link(const struct stat *link, const struct stat *folder)
{
    bool shared = folder->st_mode & S_IWOTH || (folder->st_mode & S_IWGRP && !is_our_group(folder->st_gid));

    if (!is_trusted(folder->st_uid))
        return false;
    return !shared || (folder->st_mode & S_ISVTX && is_trusted(link->st_uid) && link->st_nlink == 1);
}

/* Links of procfs are no texts: they lead where the process is that they are about. *ours: that is this one. */
static bool is_of_process(int folder, const struct stat *st, bool *ours)
{
    enum { ROOT_INODE = 1 }; /* whose links are texts */
    struct stat self;
    struct statfs fs;

    *ours = !stat("/proc/self", &self) && self.st_dev == st->st_dev && self.st_ino == st->st_ino;
    return !fstatfs(folder, &fs) && (uint32_t)fs.f_type == PROC_SUPER_MAGIC && st->st_ino != ROOT_INODE;
}

static void way_go_to(struct way *w, int fd)
{
    close(w->at);
    w->at = fd;
}

/* Whether a link of the folder that the walk has come to may be followed. */
static struct error *way_judge(const struct way *w, int link, bool *of_process)
{
    struct stat st, folder;
    bool ours;

    if (fstat(link, &st) || fstat(w->at, &folder))
        return error_file(errno, w->path, "cannot be looked at");
    if (!S_ISLNK(st.st_mode))
        return error_file(ENOTDIR, w->path, "cannot be opened for writing");
    *of_process = is_of_process(w->at, &folder, &ours);
    if (*of_process ? ours : is_trusted_link(&st, &folder))
        return NULL;
    return error_path(ERROR_PERMISSION, w->path,
                      "leads through %.*s, a symbolic link that another user may have put there: name the folder itself",
                      (int)w->passed_len, w->path);
}

/* Goes on from where a link leads whose target is a text. */
static struct error *way_follow_text(struct way *w, int link)
{
    char target[PATH_MAX], rest[sizeof w->rest];
    ssize_t len = readlinkat(link, "", target, sizeof target - 1);

    if (len <= 0)
        return error_file(errno, w->path, "cannot be opened for writing");
    target[len] = 0;
    memcpy(rest, w->rest, sizeof rest);
    if (snprintf(w->rest, sizeof w->rest, "%s/%s", target, rest) >= (int)sizeof w->rest)
        return error_file(ENAMETOOLONG, w->path, "cannot be opened for writing");
    if (*target != '/')
        return NULL;
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_file(errno, w->path, "cannot be opened for writing");
    way_go_to(w, fd);
    return NULL;
}

static struct error *way_follow(struct way *w, int link, const char *part)
{
    bool of_process = false;

    if (++w->link_count > LINKS_MAX)
        return error_file(ELOOP, w->path, "cannot be opened for writing");
    TRY(way_judge(w, link, &of_process));
    if (!of_process)
        return way_follow_text(w, link);
    int fd = openat(w->at, part, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_file(errno, w->path, "cannot be opened for writing");
    way_go_to(w, fd);
    return NULL;
}

/* O_DIRECTORY has an automount made, which O_PATH alone has not. */
static struct error *way_step(struct way *w, const char *part)
{
    int fd = openat(w->at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
        int link = openat(w->at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct error *err = link < 0 ? error_file(errno, w->path, "cannot be opened for writing") : way_follow(w, link, part);
        if (link >= 0)
            close(link);
        return err;
    }
    if (fd < 0)
        return error_file(errno, w->path, "cannot be opened for writing");
    way_go_to(w, fd);
    return NULL;
}

static struct error *way_walk(struct way *w)
{
    while (w->rest[0]) {
        char part[NAME_MAX + 1];
        size_t slashes = strspn(w->rest, "/"), len = strcspn(w->rest + slashes, "/");
        if (len > NAME_MAX)
            return error_file(ENAMETOOLONG, w->path, "cannot be opened for writing");
        memcpy(part, w->rest + slashes, len);
        part[len] = 0;
        memmove(w->rest, w->rest + slashes + len, strlen(w->rest + slashes + len) + 1);
        if (!w->link_count)
            w->passed_len += slashes + len;
        if (len && strcmp(part, "."))
            TRY(way_step(w, part));
    }
    return NULL;
}

struct error *output_place_folder(const char *path, int *folder, const char **name)
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    struct way w = {.path = path};

    *folder = -1;
    *name = *last ? last : ".";
    if ((size_t)snprintf(w.rest, sizeof w.rest, "%.*s", (int)(last - path), path) >= PATH_MAX)
        return error_file(ENAMETOOLONG, path, "cannot be opened for writing");
    w.at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w.at < 0)
        return error_file(errno, path, "cannot be opened for writing");
    struct error *err = way_walk(&w);
    if (err)
        close(w.at);
    else
        *folder = w.at;
    return err;
}

/* ---- what lies there ---- */

struct error *output_place_look(const char *path, int folder, const char *name, struct stat *st, enum output_place *out)
{
    *out = OUTPUT_NOTHING;
    if (!fstatat(folder, name, st, AT_SYMLINK_NOFOLLOW))
        return output_place_judge(path, st, out);
    return errno == ENOENT ? NULL : error_file(errno, path, "cannot be opened for writing");
}

struct error *output_place_open(const char *path, int folder, const char *name, const struct stat *st, int *fd)
{
    enum output_place place;
    struct stat opened;
    int opened_fd = openat(folder, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    *fd = -1;
    if (opened_fd < 0)
        return error_file(errno, path, "cannot be opened for writing");
    struct error *err = fstat(opened_fd, &opened) ? error_file(errno, path, "cannot be looked at") : NULL;
    if (!err && (opened.st_dev != st->st_dev || opened.st_ino != st->st_ino))
        err = error_path(ERROR_PERMISSION, path, "was replaced by another file while it was opened");
    if (!err)
        err = output_place_judge(path, &opened, &place);
    if (!err && fcntl(opened_fd, F_SETFL, O_WRONLY))
        err = error_file(errno, path, "cannot be opened for writing");
    if (err)
        close(opened_fd);
    else
        *fd = opened_fd;
    return err;
}

int output_place_create_beside(int folder, const char *name, int flags, char **temporary)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    enum { TRIES = 100 };
    uint8_t random[6];
    int fd = -1;

    if (asprintf(temporary, "%s.XXXXXX", name) < 0) {
        *temporary = NULL;
        errno = ENOMEM;
        return -1;
    }
    char *end = *temporary + strlen(name) + 1;
    errno = EEXIST;
    for (int i = 0; fd < 0 && errno == EEXIST && i < TRIES; i++) {
        if (getrandom(random, sizeof random, 0) != sizeof random)
            break;
        for (size_t k = 0; k < sizeof random; k++)
            end[k] = digits[random[k] % (sizeof digits - 1)];
        fd = openat(folder, *temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | flags, 0600);
    }
    if (fd < 0) {
        int why = errno;
        free(*temporary);
        *temporary = NULL;
        errno = why;
    }
    return fd;
}

bool output_owner(uid_t *uid, gid_t *gid)
{
    const char *sudo_uid = getenv("SUDO_UID"), *sudo_gid = getenv("SUDO_GID");
    bool given = sudo_uid && sudo_gid && !geteuid();

    *uid = given ? (uid_t)strtoul(sudo_uid, NULL, 10) : geteuid();
    *gid = given ? (gid_t)strtoul(sudo_gid, NULL, 10) : getegid();
    return given;
}

int output_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

    if (!strcmp(path, "/dev/stdout"))
        return STDOUT_FILENO;
    if (!strcmp(path, "/dev/stderr"))
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        size_t len = strlen(folders[i]), digits = strlen(path) > len ? strspn(path + len, "0123456789") : 0;
        if (!strncmp(path, folders[i], len) && digits && digits < 8 && !path[len + digits])
            return atoi(path + len);
    }
    return -1;
}
