/* SPDX-License-Identifier: Apache-2.0 */
/* While something is waited for, the signals are let through and leave a note. */
#include "capture/output/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "formats/base/clock.h"

/* A handler finds nothing but what is global. */
static volatile sig_atomic_t for_command, gave_up;
static _Atomic uint64_t told_ns; /* when the end was asked for; 0: not yet */

static void on_signal(int number, siginfo_t *info, void *context)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};

    (void)context;
    if (number == SIGINT && info->si_code == SI_KERNEL && for_command) {
        for_command = 0;
    } else if (!told_ns) {
        told_ns = now_ns();
    } else if (now_ns() - told_ns >= INTERRUPT_AGAIN_NS) {
        sigaction(number, &action, NULL);
        raise(number); /* comes when the handler is done */
    }
}

/* What is ignored stays so: a shell's background job, and what it starts. */
static void handle(int number)
{
    const struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    struct sigaction now;

    if (!sigaction(number, NULL, &now) && now.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void interrupt_init(bool command)
{
    told_ns = 0;
    gave_up = 0;
    for_command = command;
    handle(SIGINT);
    handle(SIGTERM);
}

void interrupt_command_told(void)
{
    for_command = 0;
}

void interrupt_allow(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

bool interrupt_told(void)
{
    return told_ns;
}

bool interrupt_gave_up(void)
{
    return gave_up;
}

void interrupt_tell(void)
{
    if (!told_ns)
        told_ns = now_ns();
}

bool interrupt_wait(int fd, short events, uint64_t grace_ns)
{
    uint64_t until = 0;
    sigset_t open;

    sigprocmask(SIG_SETMASK, NULL, &open);
    sigdelset(&open, SIGINT);
    sigdelset(&open, SIGTERM);
    for (;;) {
        struct pollfd one = {.fd = fd, .events = events};
        struct timespec wait;
        uint64_t now = now_ns();
        if (told_ns && !until)
            until = now + grace_ns;
        uint64_t rest = until > now ? until - now : 0;
        wait = timespec_of_ns(rest);
        int n = ppoll(&one, 1, until ? &wait : NULL, &open);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true; /* read() and write() report errors */
        if (!n) {
            gave_up = 1;
            return false;
        }
    }
}
