/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an errand begin with a path, or are what is read. */
#include "capture/host/procfs_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/errand.h"

struct path_call {
    int result, error;
    struct stat st;
    struct statx stx;
    char path[PATH_MAX]; /* as much of it as is used */
};

struct read_call {
    ssize_t result;
    int error;
    size_t size;
    char bytes[];
};

static void run_open(void *bytes, size_t size, int *fd)
{
    struct path_call *c = bytes;

    (void)size;
    *fd = open(c->path, O_RDONLY | O_CLOEXEC);
    c->error = errno;
}

static void run_lstat(void *bytes, size_t size, int *fd)
{
    struct path_call *c = bytes;

    (void)size, (void)fd;
    c->result = lstat(c->path, &c->st);
    c->error = errno;
}

static void run_statx(void *bytes, size_t size, int *fd)
{
    struct path_call *c = bytes;

    (void)size, (void)fd;
    c->result = statx(AT_FDCWD, c->path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &c->stx);
    c->error = errno;
}

/* Until there is no room, or nothing more: the kernel gives a page at a time. */
static void run_read(void *bytes, size_t size, int *fd)
{
    struct read_call *c = bytes;
    size_t len = 0;
    ssize_t n = 0;

    (void)size;
    while (len < c->size && ((n = read(*fd, c->bytes + len, c->size - len)) > 0 || (n < 0 && errno == EINTR)))
        len += n > 0 ? (size_t)n : 0;
    c->result = len || n == 0 ? (ssize_t)len : -1;
    c->error = errno;
}

/* Runs a call on a path. False with errno: it is not done. */
static bool run_on_path(pid_t pid, errand_fn run, const char *path, struct path_call *c, int *fd)
{
    size_t len = strlen(path) + 1;

    if (len > sizeof c->path) {
        errno = ENAMETOOLONG;
        return false;
    }
    c->result = -1;
    memcpy(c->path, path, len);
    if (!errand_run(pid, run, c, offsetof(struct path_call, path) + len, fd))
        return false;
    errno = c->error;
    return true;
}

int procfs_call_open(pid_t pid, const char *path)
{
    struct path_call c;
    int fd = -1;

    return run_on_path(pid, run_open, path, &c, &fd) ? fd : -1;
}

int procfs_call_lstat(pid_t pid, const char *path, struct stat *st)
{
    struct path_call c;

    if (!run_on_path(pid, run_lstat, path, &c, NULL))
        return -1;
    *st = c.st;
    return c.result;
}

int procfs_call_statx(pid_t pid, const char *path, struct statx *stx)
{
    struct path_call c;

    if (!run_on_path(pid, run_statx, path, &c, NULL))
        return -1;
    *stx = c.stx;
    return c.result;
}

ssize_t procfs_call_read(pid_t pid, int fd, void *out, size_t size)
{
    struct read_call *c = malloc(sizeof *c + size);
    int given = fd;

    if (!c) {
        errno = ENOMEM;
        return -1;
    }
    *c = (struct read_call){.size = size};
    if (!errand_run(pid, run_read, c, sizeof *c + size, &given)) {
        int why = errno;
        free(c);
        errno = why;
        return -1;
    }
    ssize_t n = c->result;
    if (n > 0 && (size_t)n <= size)
        memcpy(out, c->bytes, (size_t)n);
    int error = c->error;
    free(c);
    errno = error;
    return n;
}
