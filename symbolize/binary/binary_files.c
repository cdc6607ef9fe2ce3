/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/binary_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int binary_open(const char *path, int fd)
{
    return fd ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* What of `path` follows `start`; NULL: it begins otherwise. */
static const char *rest_of(const char *path, const char *start, size_t start_len)
{
    return strncmp(path, start, start_len) ? NULL : path + start_len;
}

/* Where the debug link of a binary leads when both were installed together. */
static bool is_beside(const char *debug, const char *binary)
{
    static const char folder[] = ".debug/";
    const char *name = rest_of(debug, binary, (size_t)(strrchr(binary, '/') - binary) + 1);

    if (name && rest_of(name, folder, sizeof folder - 1))
        name += sizeof folder - 1;
    return name && !strchr(name, '/');
}

bool binary_files_are_at(const struct binary_files *files, const char *path, size_t path_len)
{
    static const char folder[] = BINARY_DEBUG_FOLDER "/";

    if (!files->binary)
        return !files->debug;
    if (*path != '/' || strlen(files->binary) != path_len || memcmp(files->binary, path, path_len) != 0)
        return false;
    return !files->debug || is_beside(files->debug, files->binary) || rest_of(files->debug, folder, sizeof folder - 1);
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
