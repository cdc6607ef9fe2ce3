/* SPDX-License-Identifier: Apache-2.0 */
/* An errand has a descriptor, a path and memory of its own, since it may come too late. */
#include "capture/host/procfs_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/host/errand.h"

struct call_errand {
    struct errand errand;
    int fd;         /* closed with it; -1: none */
    ssize_t result; /* of the call */
    int error;
    struct stat st;
    size_t size; /* of the path, or of what is read */
    char bytes[];
};

static struct call_errand *call_of(struct errand *e)
{
    return (struct call_errand *)e;
}

static void destroy(struct errand *e)
{
    struct call_errand *c = call_of(e);

    if (c->fd >= 0)
        close(c->fd);
    free(c);
}

static void run_open(struct errand *e)
{
    struct call_errand *c = call_of(e);

    c->fd = open(c->bytes, O_RDONLY | O_CLOEXEC);
    c->error = errno;
}

static ssize_t read_now(int fd, void *out, size_t size)
{
    ssize_t n;

    do
        n = read(fd, out, size);
    while (n < 0 && errno == EINTR);
    return n;
}

static void run_read(struct errand *e)
{
    struct call_errand *c = call_of(e);

    c->result = read_now(c->fd, c->bytes, c->size);
    c->error = errno;
}

static void run_lstat(struct errand *e)
{
    struct call_errand *c = call_of(e);

    c->result = lstat(c->bytes, &c->st);
    c->error = errno;
}

/* Runs a call with `size` bytes, which begin with a copy of `path` if that is not NULL. NULL with errno: it is not done. */
static struct call_errand *run(pid_t pid, void (*how)(struct errand *), int fd, const char *path, size_t size)
{
    struct call_errand *c = calloc(1, sizeof *c + size);

    if (!c) {
        if (fd >= 0)
            close(fd);
        errno = ENOMEM;
        return NULL;
    }
    c->errand = (struct errand){pid, how, destroy};
    c->fd = fd;
    c->size = size;
    if (path)
        memcpy(c->bytes, path, size);
    return errand_run(&c->errand) ? c : NULL;
}

int procfs_call_open(pid_t pid, const char *path)
{
    if (!errand_threads_used())
        return open(path, O_RDONLY | O_CLOEXEC);
    struct call_errand *c = run(pid, run_open, -1, path, strlen(path) + 1);
    if (!c)
        return -1;
    int fd = c->fd, error = c->error;
    c->fd = -1;
    destroy(&c->errand);
    errno = error;
    return fd;
}

ssize_t procfs_call_read(pid_t pid, int fd, void *out, size_t size)
{
    if (!errand_threads_used())
        return read_now(fd, out, size);
    int own = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    struct call_errand *c = own < 0 ? NULL : run(pid, run_read, own, NULL, size);
    if (!c)
        return -1;
    ssize_t n = c->result;
    if (n > 0)
        memcpy(out, c->bytes, (size_t)n);
    int error = c->error;
    destroy(&c->errand);
    errno = error;
    return n;
}

int procfs_call_lstat(pid_t pid, const char *path, struct stat *st)
{
    if (!errand_threads_used())
        return lstat(path, st);
    struct call_errand *c = run(pid, run_lstat, -1, path, strlen(path) + 1);
    if (!c)
        return -1;
    int result = (int)c->result, error = c->error;
    *st = c->st;
    destroy(&c->errand);
    errno = error;
    return result;
}
