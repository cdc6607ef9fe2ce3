/* SPDX-License-Identifier: Apache-2.0 */
/* The helper waits for the end of a pipe that only pycap has open: the kernel closes it even when pycap is killed. */
#include "capture/output/note_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/host/privileges.h"
#include "capture/host/sandbox.h"
#include "formats/base/helper_process.h"
#include "formats/base/landlock.h"
#include "formats/base/output_place.h"

#define MODE 0600

struct note_file {
    char *path;
    const char *name; /* the last part of it */
    int fd;           /* for reading */
    int pipe;         /* never written to: its end tells the helper to remove the file */
    pid_t helper;     /* 0: there is none yet */
};

/* Nobody but root and us may put another file in place of ours there. */
static bool is_safe(int folder)
{
    struct stat st;

    if (fstat(folder, &st) || (st.st_uid && st.st_uid != geteuid()))
        return false;
    return !(st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_mode & S_ISVTX;
}

/* Not through a link that another user may have put there. -1: errno says why not. */
static int open_place(const char *path)
{
    char with_slash[PATH_MAX];
    const char *name;
    int folder;

    if (snprintf(with_slash, sizeof with_slash, "%s/", path) >= (int)sizeof with_slash) {
        errno = ENAMETOOLONG;
        return -1;
    }
    struct error *err = output_place_folder(with_slash, &folder, &name);
    if (!err)
        return helper_descriptor(folder);
    errno = err->os_errno ? err->os_errno : EPERM;
    error_destroy(err);
    return -1;
}

/* Opens the folder for temporary files, and says which it is. -1: errno says why not. */
static int open_folder(const char **path)
{
    const char *chosen = secure_getenv("TMPDIR");
    const char *const folders[] = {chosen && *chosen == '/' ? chosen : "/tmp", "/tmp"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        int fd = open_place(folders[i]);
        *path = folders[i];
        if (fd >= 0 && is_safe(fd))
            return fd;
        if (fd >= 0) {
            close(fd);
            errno = EPERM;
        }
    }
    return -1;
}

static bool name_file(struct note_file *n, const char *folder)
{
    uint64_t random;

    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return false;
    if (asprintf(&n->path, "%s/pycap-note-%016" PRIx64, folder, random) < 0) {
        n->path = NULL;
        return false;
    }
    n->name = strrchr(n->path, '/') + 1;
    return true;
}

/* Makes the file in the folder; false: errno says why not. */
static bool make_file(struct note_file *n, int folder)
{
    n->fd = helper_descriptor(openat(folder, n->name, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, MODE));
    return n->fd >= 0 && !fchmod(n->fd, MODE); /* whatever the umask is */
}

/* The helper: to remove a file, it needs no more than the writer of the trace does. */
static void be_helper(const struct note_file *n, int folder, int pipe, bool confine)
{
    const struct landlock_place place = {.fd = folder, .access = LANDLOCK_RENAME};
    const int keep[] = {folder, pipe};
    ssize_t got;
    char byte;

    helper_begin("pycap-note", keep, sizeof keep / sizeof *keep);
    if (confine && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        landlock_enter(&place, 1);
        error_destroy(privileges_drop_but_files());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        error_destroy(sandbox_enter_writer());
#endif
    }
    do
        got = read(pipe, &byte, sizeof byte);
    while (got > 0 || (got < 0 && errno == EINTR));
    unlinkat(folder, n->name, 0);
    _exit(0);
}

static bool fork_helper(struct note_file *n, int folder, bool confine)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return false;
    ends[0] = helper_descriptor(ends[0]);
    n->pipe = helper_descriptor(ends[1]);
    pid_t pid = ends[0] < 0 || n->pipe < 0 ? -1 : fork();
    if (!pid)
        be_helper(n, folder, ends[0], confine);
    int why = errno;
    if (ends[0] >= 0)
        close(ends[0]);
    errno = why;
    n->helper = pid > 0 ? pid : 0;
    return pid > 0;
}

struct error *note_file_create(bool confine, struct note_file **out)
{
    struct note_file *n = calloc(1, sizeof *n);
    const char *where;

    if (!n)
        return error_no_memory();
    n->fd = n->pipe = -1;
    int folder = open_folder(&where);
    bool good = folder >= 0 && name_file(n, where) && make_file(n, folder) && fork_helper(n, folder, confine);
    struct error *err = good ? NULL : error_file(errno, where, "no file for notes of the command (PYCAP_NOTE) can be made there; it is recorded without, and TMPDIR names another "
                                           "folder");
    if (err && n->fd >= 0)
        unlinkat(folder, n->name, 0);
    if (folder >= 0)
        close(folder);
    if (err)
        note_file_destroy(n);
    else
        *out = n;
    return err;
}

const char *note_file_path(const struct note_file *n)
{
    return n->path;
}

size_t note_file_read(const struct note_file *n, void *to, size_t size, uint64_t *more_bytes)
{
    struct stat st;
    size_t have = 0;
    ssize_t got = 1;

    while (have < size && (got = pread(n->fd, (char *)to + have, size - have, (off_t)have)) > 0)
        have += (size_t)got;
    /* What is written while it is read does not make it too long. */
    *more_bytes = got > 0 && !fstat(n->fd, &st) && (uint64_t)st.st_size > have ? (uint64_t)st.st_size - have : 0;
    return have;
}

void note_file_destroy(struct note_file *n)
{
    if (!n)
        return;
    if (n->pipe >= 0)
        close(n->pipe);
    if (n->helper)
        helper_wait(n->helper);
    if (n->fd >= 0)
        close(n->fd);
    free(n->path);
    free(n);
}
