/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolize/push/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PATIENCE_S = 5 };

/* Handlers have nothing else to go by. */
static struct {
    volatile sig_atomic_t requested;
    int fd;
    struct store *volatile store;
} stop = {.fd = -1};

static void end_request(void)
{
    struct store *store = stop.store;

    if (store)
        store_stop(store);
}

static void take_signal(int number)
{
    const uint64_t one = 1;
    int why = errno;

    if (number == SIGALRM || stop.requested)
        end_request();
    if (number != SIGALRM && !stop.requested) {
        stop.requested = true;
        alarm(PATIENCE_S);
        if (write(stop.fd, &one, sizeof one) < 0)
            end_request(); /* nothing was there to wake */
    }
    errno = why;
}

static void take(int number)
{
    struct sigaction act = {.sa_handler = take_signal}, before;

    if (!sigaction(number, NULL, &before) && before.sa_handler != SIG_IGN)
        sigaction(number, &act, NULL);
}

struct error *stop_begin(void)
{
    stop.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (stop.fd < 0)
        return error_os(errno, "an eventfd cannot be made");
    signal(SIGALRM, SIG_DFL);
    take(SIGALRM);
    take(SIGTERM);
    take(SIGINT);
    if (isatty(STDERR_FILENO))
        take(SIGHUP);
    else
        signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    return NULL;
}

void stop_watch(struct store *store)
{
    stop.store = store;
}

bool stop_requested(void)
{
    return stop.requested;
}

int stop_fd(void)
{
    return stop.fd;
}
