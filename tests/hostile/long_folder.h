/* SPDX-License-Identifier: Apache-2.0 */
/* A file whose path is nearly as long as the kernel allows. */
#ifndef TESTS_HOSTILE_LONG_FOLDER_H
#define TESTS_HOSTILE_LONG_FOLDER_H

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/hostile/attack.h"

/* Makes folders of 200 characters each below this one, 3.8 KB in all, and a file of one page in the last; returns it. */
static inline int open_far_below(void)
{
    char name[201];

    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    for (int i = 0; i < 19; i++)
        if ((mkdir(name, 0755) && errno != EEXIST) || chdir(name))
            DIE("folder");
    int fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0755);
    if (fd < 0 || ftruncate(fd, 4096))
        DIE("file");
    return fd;
}

#endif
