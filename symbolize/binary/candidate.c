/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/binary/candidate.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "formats/base/open_regular.h"

int candidate_open(const char *path, size_t named_bytes, bool stay_below)
{
    char named[PATH_MAX];

    if (named_bytes >= sizeof named)
        return -1;
    snprintf(named, sizeof named, "%.*s", (int)named_bytes, path);
    int folder = open(named_bytes ? named : *path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    int fd = open_regular(folder, path + named_bytes, stay_below ? OPEN_FOLLOW : OPEN_OUTSIDE);
    close(folder);
    return fd;
}
