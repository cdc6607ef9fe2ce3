/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");

    return folder && *folder ? folder : "/tmp";
}

static int open_nameless(void)
{
    char *path;
    int fd = open(temporary_folder(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0) { /* not every file system can */
        if (asprintf(&path, "%s/pysym.XXXXXX", temporary_folder()) < 0) {
            errno = ENOMEM;
            return -1;
        }
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            unlink(path);
        int why = errno;
        free(path);
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
    struct error *err = error_file(why, temporary_folder(), "no temporary file can be made");
    errno = why;
    return err;
}
