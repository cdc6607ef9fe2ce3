/* SPDX-License-Identifier: Apache-2.0 */
/* O_TMPFILE where the file system has it, else a file that is unlinked at once, else memory (memfd_create). */
#include "formats/base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");

    return folder && *folder ? folder : "/tmp";
}

/* Whether the folder is nobody's choice, and no file can be made there: it is missing or read-only, as in small containers. */
static bool is_missing(int why)
{
    const char *folder = getenv("TMPDIR");

    return (!folder || !*folder) && (why == ENOENT || why == EROFS || why == EACCES || why == ENOTDIR);
}

static int open_nameless(void)
{
    char *path;
    int fd = open(temporary_folder(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) { /* some file systems lack O_TMPFILE */
        if (asprintf(&path, "%s/pysym.XXXXXX", temporary_folder()) < 0) {
            errno = ENOMEM;
            return -1;
        }
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            unlink(path);
        int why = errno;
        free(path);
        if (fd < 0 && is_missing(why))
            fd = memfd_create("pysym", MFD_CLOEXEC);
        errno = why;
    }
    return fd;
}

struct error *temporary_open(int *out)
{
    int fd = open_nameless();

    if (fd >= 0 && fd <= STDERR_FILENO) {
        int other = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), why = errno;
        close(fd);
        errno = why;
        fd = other;
    }
    *out = fd;
    if (fd >= 0)
        return NULL;
    int why = errno;
    struct error *err = error_file(why, temporary_folder(),
                                   "cannot create a temporary file here (TMPDIR chooses another folder)");
    errno = why;
    return err;
}
