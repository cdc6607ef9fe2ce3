/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors are closed in ranges between those that are kept, however many are open. */
#include "formats/base/helper_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "formats/base/clock.h"

/* How long a helper's end is waited for, in milliseconds: it has nothing to do then. */
#define END_MS 1000

static bool is_kept(int fd, const int *keep, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (keep[i] == fd)
            return true;
    }
    return false;
}

/*
 * Whoever waits for the end of one of the closed ones, as a shell does for a pipe's, must not wait for this process.
 */
static void close_others(const int *keep, size_t count)
{
    unsigned from = STDERR_FILENO + 1;
    int nothing = open("/dev/null", O_RDWR);

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && nothing >= 0; fd++) {
        if (!is_kept(fd, keep, count))
            dup2(nothing, fd);
    }
    while (from < ~0u) {
        unsigned next = ~0u;
        for (size_t i = 0; i < count; i++) {
            if ((unsigned)keep[i] >= from && (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        }
        if (next > from)
            syscall(SYS_close_range, from, next == ~0u ? next : next - 1, 0);
        from = next == ~0u ? next : next + 1;
    }
}

/*
 * The terminal's Ctrl-C and a service manager's SIGTERM go to all processes of the program; the first decides when these end. So
 * may SIGUSR1, which only the first understands.
 */
static void ignore_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE, SIGXFSZ};

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_IGN);
}

void helper_begin(const char *name, const int *keep, size_t count)
{
    ignore_signals();
    prctl(PR_SET_NAME, name);
    close_others(keep, count);
}

void helper_wait(pid_t pid)
{
    for (int i = 0; i < END_MS; i++) {
        if (waitpid(pid, NULL, WNOHANG))
            return;
        nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
    }
}

int helper_descriptor(int fd)
{
    int moved = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), why = errno;

    if (fd >= 0)
        close(fd);
    errno = why;
    return moved;
}
