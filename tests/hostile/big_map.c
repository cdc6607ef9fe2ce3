/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps a huge sparse file without a build ID executable: whoever hashes it has work for long.
 * usage: big_map SECONDS GIBIBYTES plain|elf     elf: with the head of an ELF file
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/hostile/attack.h"

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    char name[64], head[64];
    snprintf(name, sizeof(name), "big-%s", argv[3]);
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0755), program = open("/bin/true", O_RDONLY);

    if (fd < 0 || ftruncate(fd, (off_t)atoi(argv[2]) << 30))
        DIE(name);
    if (!strcmp(argv[3], "elf") && (read(program, head, sizeof(head)) != sizeof(head) || write(fd, head, sizeof(head)) < 0))
        DIE("head");
    wait_for_go();
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        DIE("mmap");
    sleep((unsigned)atoi(argv[1]));
    return 0;
}
