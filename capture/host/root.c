/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths are resolved part by part, with descriptors that open nothing (O_PATH). So links stay inside the root of the
 * process, links of /proc that lead elsewhere are only text, and a file is opened when it is known to be a regular one.
 * openat2(2) does all this in one call, but a filter of system calls cannot see whether it opens for writing.
 */
#include "capture/host/root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As the kernel has it (MAXSYMLINKS). */
#define LINKS_MAX 40
#define DEPTH_MAX 256

/* A way into a file system: the folders gone through, from the root on. ".." goes back and needs no trust in the folder. */
struct way {
    int folders[DEPTH_MAX];
    int depth;
    int links;
    char rest[2 * PATH_MAX]; /* what is still to be resolved */
};

static void go_back(struct way *w, int depth)
{
    while (w->depth > depth)
        close(w->folders[--w->depth]);
}

/* Takes the next part off the rest; false: there is none. */
static bool next_part(struct way *w, char part[NAME_MAX + 1], bool *last)
{
    size_t start = strspn(w->rest, "/"), len = strcspn(w->rest + start, "/");

    if (!len)
        return false;
    /* The kernel says that it is too long. */
    snprintf(part, NAME_MAX + 1, "%.*s", len > NAME_MAX ? 0 : (int)len, w->rest + start);
    memmove(w->rest, w->rest + start + len, strlen(w->rest + start + len) + 1);
    *last = !w->rest[strspn(w->rest, "/")];
    return true;
}

/* Puts what a symbolic link says before the rest. */
static bool take_link(struct way *w, int link)
{
    char text[2 * PATH_MAX];
    ssize_t n = readlinkat(link, "", text, PATH_MAX);
    size_t rest_len = strlen(w->rest);

    if (n < 0)
        return false;
    if (!n || n == PATH_MAX || ++w->links > LINKS_MAX || (size_t)n + rest_len >= sizeof w->rest) {
        errno = ELOOP;
        return false;
    }
    memcpy(text + n, w->rest, rest_len + 1);
    memcpy(w->rest, text, (size_t)n + rest_len + 1);
    if (*text == '/')
        go_back(w, 1);
    return true;
}

/* Resolves one part. Returns the file at the end of the way, opened with O_PATH; -1 with errno 0: there is more to do. */
static int step(struct way *w, const char *part, bool last, bool follow)
{
    struct stat st;

    errno = 0;
    if (!strcmp(part, "."))
        return -1;
    if (!strcmp(part, "..")) {
        go_back(w, w->depth > 1 ? w->depth - 1 : 1);
        return -1;
    }
    int fd = openat(w->folders[w->depth - 1], part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int why = 0;
    if (fstat(fd, &st)) {
        why = errno;
    } else if (S_ISLNK(st.st_mode)) {
        why = last && !follow ? ELOOP : take_link(w, fd) ? 0 : errno;
    } else if (S_ISDIR(st.st_mode)) {
        why = w->depth < DEPTH_MAX ? 0 : ENAMETOOLONG;
        if (!why) {
            w->folders[w->depth++] = fd;
            fd = -1;
        }
    } else if (last) {
        return fd;
    } else {
        why = ENOTDIR;
    }
    if (fd >= 0)
        close(fd);
    errno = why;
    return -1;
}

static int resolve(struct way *w, const char *path, bool follow)
{
    char part[NAME_MAX + 1];
    bool last;

    if (strlen(path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(w->rest, path);
    while (next_part(w, part, &last)) {
        int fd = step(w, part, last, follow);
        if (fd >= 0 || errno)
            return fd;
    }
    errno = EISDIR;
    return -1;
}

/* Opens for reading what an O_PATH descriptor stands for, if it is a regular file. */
static int open_regular(int fd)
{
    char name[64];
    struct stat st;

    if (fstat(fd, &st))
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = ENOENT;
        return -1;
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    return open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

int root_open(pid_t pid, const char *path, bool follow)
{
    struct way w = {.links = 0};
    char root[64] = "/";

    if (pid)
        snprintf(root, sizeof root, "/proc/%d/root", pid);
    w.folders[0] = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (w.folders[0] < 0)
        return -1;
    w.depth = 1;
    int fd = resolve(&w, path, follow), why = errno;
    go_back(&w, 0);
    if (fd < 0) {
        errno = why;
        return -1;
    }
    int opened = open_regular(fd);
    why = errno;
    close(fd);
    errno = why;
    return opened;
}
