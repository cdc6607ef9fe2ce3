/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program, and says what it used.
 *
 * usage: build/tools/measure FD PROGRAM [ARGUMENT...]
 * Writes a line to the descriptor: the status as wait() gives it, CPU microseconds, and the most memory, in KiB.
 *
 * A process's maximum is never below that of the process which became it by exec(), so one that is forked from a large
 * program, such as a test runner, seems as large. This one is small.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static long long microseconds(struct timeval t)
{
    return t.tv_sec * 1000000LL + t.tv_usec;
}

int main(int argc, char **argv)
{
    struct rusage used;
    int status;

    if (argc < 3)
        return 2;
    int out = atoi(argv[1]);
    pid_t child = fork();
    if (!child) {
        close(out);
        execv(argv[2], argv + 2);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        return 1;
    return dprintf(out, "%d %lld %ld\n", status, microseconds(used.ru_utime) + microseconds(used.ru_stime), used.ru_maxrss) < 0;
}
