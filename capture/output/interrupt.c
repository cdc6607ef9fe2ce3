/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals are blocked in all threads and read from a signalfd. What is sent to a process that ends by a signal's
 * default effect ends even threads that wait in the kernel for what never comes.
 */
#include "capture/output/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "capture/host/quiet_thread.h"

/* A process has its signals once. */
static struct {
    atomic_bool for_command;
    _Atomic uint64_t told_ns; /* when the end was asked for; 0: not yet */
    atomic_bool started;
    bool gave_up;
    bool ignored[NSIG]; /* when pycap started: a shell's background job, and what it starts */
    int signal_fd, event_fd;
    void (*begin)(void);
    sem_t begun;
} state = {.signal_fd = -1, .event_fd = -1};

/* Has the signal's default effect on the process. */
static _Noreturn void die(int number)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t set;

    sigaction(number, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    _exit(128 + number);
}

/* Where the main thread does not come to its loop. */
static void end_start(int number)
{
    for (uint64_t until_ns = now_ns() + INTERRUPT_START_NS; !atomic_load(&state.started);) {
        if (now_ns() >= until_ns) {
            if (!state.ignored[number])
                die(number);
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 10 * NS_PER_MS}, NULL);
    }
}

static void *receive(void *ctx)
{
    struct signalfd_siginfo info;

    (void)ctx;
    state.begin();
    sem_post(&state.begun);
    for (;;) {
        if (read(state.signal_fd, &info, sizeof info) != sizeof info)
            continue;
        int number = (int)info.ssi_signo;
        if (number == SIGINT && info.ssi_code == SI_KERNEL && atomic_exchange(&state.for_command, false))
            continue; /* it went to the command too, whose end is still recorded */
        uint64_t told_ns = atomic_load(&state.told_ns);
        if (!told_ns) {
            interrupt_tell();
            end_start(number);
        } else if (now_ns() - told_ns >= INTERRUPT_AGAIN_NS && !state.ignored[number]) {
            die(number);
        }
    }
    return NULL;
}

static struct error *start_thread(void)
{
    pthread_t thread;

    sem_init(&state.begun, 0, 0);
    int e = quiet_thread_start(&thread, receive, NULL);
    if (e)
        return error_os(e, "the thread that receives signals cannot be started");
    pthread_detach(thread);
    /* The list of system calls that comes later lets no thread change its user. */
    while (sem_wait(&state.begun))
        continue;
    return NULL;
}

struct error *interrupt_init(void (*begin)(void), bool command)
{
    static const int numbers[] = {SIGINT, SIGTERM};
    sigset_t signals;

    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction now;
        sigaddset(&signals, numbers[i]);
        state.ignored[numbers[i]] = !sigaction(numbers[i], NULL, &now) && now.sa_handler == SIG_IGN;
    }
    if (sigprocmask(SIG_BLOCK, &signals, NULL))
        return error_os(errno, "signals cannot be blocked");
    state.begin = begin;
    atomic_store(&state.for_command, command);
    state.signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    state.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (state.signal_fd < 0 || state.event_fd < 0)
        return error_os(errno, "signals cannot be read");
    return start_thread();
}

void interrupt_started(void)
{
    atomic_store(&state.started, true);
}

void interrupt_command_ended(void)
{
    atomic_store(&state.for_command, false);
}

void interrupt_tell(void)
{
    uint64_t never = 0;

    if (atomic_compare_exchange_strong(&state.told_ns, &never, now_ns()) && eventfd_write(state.event_fd, 1))
        return; /* told_ns says the same */
}

bool interrupt_told(void)
{
    return atomic_load(&state.told_ns);
}

int interrupt_fd(void)
{
    return state.event_fd;
}

bool interrupt_gave_up(void)
{
    return state.gave_up;
}

bool interrupt_wait(int fd, short events, uint64_t grace_ns)
{
    uint64_t until = 0;

    for (;;) {
        uint64_t now = now_ns();
        bool told = interrupt_told();
        struct pollfd fds[] = {{.fd = fd, .events = events}, {.fd = told ? -1 : state.event_fd, .events = POLLIN}};
        if (told && !until) {
            until = now + grace_ns;
            interrupt_started(); /* it is heeded */
        }
        const struct timespec wait = timespec_of_ns(until > now ? until - now : 0);
        int n = ppoll(fds, 2, told ? &wait : NULL, NULL);
        if (fds[0].revents || (n < 0 && errno != EINTR))
            return true; /* read() and write() report errors */
        if (!n) {
            state.gave_up = true;
            return false;
        }
    }
}
