/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps a file with a long path at ever new addresses and unmaps it at once: perf tells of the one and not of the other.
 * usage: map_flood SECONDS
 */
#include <sys/mman.h>
#include <time.h>

#include "tests/hostile/long_folder.h"

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    char *at = (char *)0x100000000000;
    int fd = open_far_below();

    wait_for_go();
    time_t stop = time(NULL) + atoi(argv[1]);
    for (unsigned n = 1; n % 64 || time(NULL) < stop; n++, at += 8192) {
        if (mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
            DIE("mmap");
        munmap(at, 4096);
    }
    return 0;
}
