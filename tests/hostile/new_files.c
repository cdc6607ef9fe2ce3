/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps new files as code, as fast as it can up to COUNT, and then 2,000 a second; with ids, children do, each as the next one and
 * for a moment. Started by sessions.py.
 * usage: new_files SECONDS COUNT [FIRST_ID IDS]
 */
#include <elf.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/hostile/attack.h"

enum { PAUSE_US = 500, AT_ONCE = 4 };

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The file lies in memory: the disk shall not be what is slow. */
static void map_file(void)
{
    static const Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN,
                                    .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof head};
    int fd = memfd_create("new", 0);

    if (fd < 0 || write(fd, &head, sizeof head) != sizeof head ||
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
        DIE("file");
    close(fd);
}

static void map_files(int count, double end, int go_on)
{
    for (int i = 0; now() < end && (go_on || i < count); i++) {
        map_file();
        if (i >= count)
            usleep(PAUSE_US);
    }
}

static void as_others(int count, double end, unsigned first, unsigned ids)
{
    for (unsigned i = 0; i < ids && now() < end; i++) {
        if (i >= AT_ONCE)
            wait(NULL);
        if (fork())
            continue;
        if (setgroups(0, NULL) || setresgid(first + i, first + i, first + i) || setresuid(first + i, first + i, first + i))
            DIE("ids");
        map_files(count, end, ids == 1);
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 5)
        return 2;
    double end = now() + atof(argv[1]);
    if (argc == 5)
        as_others(atoi(argv[2]), end, (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
    else
        map_files(atoi(argv[2]), end, 1);
    return 0;
}
