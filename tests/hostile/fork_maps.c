/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many executable mappings of a file with a long path, and then many children, which have them all.
 * usage: fork_maps SECONDS MAPPINGS CHILDREN
 */
#include <sys/mman.h>

#include "tests/hostile/long_folder.h"

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    unsigned seconds = (unsigned)atoi(argv[1]);
    char *at = (char *)0x100000000000;
    int fd = open_far_below();

    wait_for_go();
    for (int i = 0; i < atoi(argv[2]); i++, at += 8192)
        if (mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
            DIE("mmap");
    for (int i = 0; i < atoi(argv[3]); i++) {
        if (!fork()) {
            sleep(seconds);
            _exit(0);
        }
        usleep(10000);
    }
    sleep(seconds);
    return 0;
}
