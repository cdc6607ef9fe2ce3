/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/binary_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int binary_open(const char *path, int fd)
{
    return fd ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

void binary_files_deinit(struct binary_files *files)
{
    const int fds[] = {files->binary_fd, files->debug_fd, files->supplement_fd};

    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (fds[i])
            close(fds[i]);
    }
    free(files->binary);
    free(files->debug);
    free(files->supplement);
    free(files->source);
    free(files->debug_source);
    free(files->supplement_source);
    free(files->problem);
    *files = (struct binary_files){0};
}
