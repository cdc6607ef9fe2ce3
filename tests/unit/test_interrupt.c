/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT and SIGTERM arrive whatever the main thread does: each case is a process whose main thread never looks. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/output/interrupt.h"
#include "formats/base/clock.h"

STARTS_THREADS;

#define LIMIT_NS (5 * NS_PER_S) /* five times what is promised: the machine may be busy */

static void begin(void)
{
}

struct stuck {
    pid_t pid;
    int told_fd; /* gets a byte when the process may be sent signals, another when it was told to end */
};

/* What the main thread does for ever. */
struct wait {
    void (*run)(const struct wait *w);
    void *memory;
    pid_t owner; /* of the memory */
    bool begins; /* it has not come to where signals are heeded */
};

static void pause_for_ever(const struct wait *w)
{
    (void)w;
    for (;;)
        pause();
}

static void read_for_ever(const struct wait *w)
{
    char byte;
    const struct iovec local = {&byte, 1}, remote = {w->memory, 1};

    process_vm_readv(w->owner, &local, 1, &remote, 1, 0);
    _exit(1); /* it was answered */
}

/* A thread that reports when the process was told. */
static void *report(void *fd)
{
    struct pollfd one = {.fd = interrupt_fd(), .events = POLLIN};

    while (poll(&one, 1, -1) < 0)
        continue;
    if (!interrupt_told() || write(*(int *)fd, "t", 1) != 1)
        _exit(2);
    return NULL;
}

static struct stuck start(const struct wait *w)
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct stuck s = {.pid = fork(), .told_fd = ends[0]};
    assert_true(s.pid >= 0);
    if (!s.pid) {
        pthread_t thread;
        alarm(60); /* whatever happens to the test */
        if (interrupt_init(begin, false) || pthread_create(&thread, NULL, report, &ends[1]) || write(ends[1], "s", 1) != 1)
            _exit(3);
        if (!w->begins)
            interrupt_started();
        w->run(w);
    }
    close(ends[1]);
    char byte = 0;
    assert_int_equal(read(s.told_fd, &byte, 1), 1);
    assert_int_equal(byte, 's');
    return s;
}

static bool is_told(const struct stuck *s, int wait_ms)
{
    struct pollfd one = {.fd = s->told_fd, .events = POLLIN};
    char byte = 0;

    return poll(&one, 1, wait_ms) == 1 && read(s->told_fd, &byte, 1) == 1 && byte == 't';
}

/* Whether the process has taken all signals that it was sent. */
static bool has_taken_all(pid_t pid)
{
    char path[64], line[128];
    unsigned long long pending = 1;

    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "ShdPnd: %llx", &pending) == 1)
            break;
    fclose(f);
    return !pending;
}

/* The same signal at once does nothing. False: the machine was too busy to deliver it at once, which tells nothing. */
static bool at_once_does_nothing(const struct stuck *s, int number, uint64_t told_ns)
{
    int status;

    assert_int_equal(kill(s->pid, number), 0);
    while (!has_taken_all(s->pid) && now_ns() - told_ns < LIMIT_NS)
        usleep(1000);
    if (now_ns() - told_ns >= INTERRUPT_AGAIN_NS)
        return false;
    assert_int_equal(waitpid(s->pid, &status, WNOHANG), 0);
    return true;
}

/*
 * The first signal tells, the same at once again does nothing, a later one ends the process. Where the process has no CPU for half a
 * second a later one may still come too soon for it, so it is sent again, as a person would.
 */
static void end(const struct wait *w, int number, const char *where)
{
    struct stuck s;
    uint64_t told_ns;
    int status, ended = 0;

    for (int tries = 0;; tries++) {
        s = start(w);
        assert_int_equal(kill(s.pid, number), 0);
        assert_true(is_told(&s, LIMIT_NS / NS_PER_MS));
        told_ns = now_ns();
        if (at_once_does_nothing(&s, number, told_ns))
            break;
        assert_true(tries < 20);
        kill(s.pid, SIGKILL);
        waitpid(s.pid, &status, 0);
        close(s.told_fd);
    }
    usleep((INTERRUPT_AGAIN_NS + 50 * NS_PER_MS) / 1000);
    uint64_t sent_ns = now_ns();
    while (!ended && now_ns() - sent_ns < 6 * LIMIT_NS) {
        kill(s.pid, number);
        for (int ms = 0; ms < 600 && !(ended = waitpid(s.pid, &status, WNOHANG)); ms++)
            usleep(1000);
    }
    assert_int_equal(ended, s.pid);
    print_message("stuck in %s: ended %.1f ms after the second signal\n", where, (double)(now_ns() - sent_ns) / NS_PER_MS);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), number);
    close(s.told_fd);
}

/* Whoever runs the tests in the background ignores signals. */
static int ignore_nothing(void **state)
{
    (void)state;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    return 0;
}

TESTS_WITH(ignore_nothing, NULL);

TEST(a_second_signal_ends_what_is_stuck)
{
    const struct wait w = {.run = pause_for_ever};

    for (int i = 0; i < 2; i++)
        end(&w, i ? SIGTERM : SIGINT, "pause()");
}

/* Memory whose owner has to deliver each page, and never does. NULL: the kernel has no such memory for us. */
static void *undelivered_page(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

    if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
        return NULL;
    size_t len = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    struct uffdio_register area = {.range = {(uintptr_t)page, len}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    return ioctl(fd, UFFDIO_REGISTER, &area) ? NULL : page;
}

TEST(a_second_signal_ends_reading_of_memory)
{
    const struct wait w = {.run = read_for_ever, .memory = undelivered_page(), .owner = getpid()};

    if (!w.memory) {
        print_message("skipped: userfaultfd is not permitted here\n");
        skip();
    }
    end(&w, SIGTERM, "process_vm_readv()");
}

/* A signal that was ignored when the process started asks it to end, but never kills it. */
TEST(ignored_signals_kill_nobody)
{
    const struct wait w = {.run = pause_for_ever};
    int status;

    signal(SIGINT, SIG_IGN);
    struct stuck s = start(&w);
    signal(SIGINT, SIG_DFL);
    assert_int_equal(kill(s.pid, SIGINT), 0);
    assert_true(is_told(&s, LIMIT_NS / NS_PER_MS));
    usleep((INTERRUPT_AGAIN_NS + 50 * NS_PER_MS) / 1000);
    assert_int_equal(kill(s.pid, SIGINT), 0);
    usleep(50 * 1000);
    assert_int_equal(waitpid(s.pid, &status, WNOHANG), 0);
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
    assert_int_equal(WTERMSIG(status), SIGTERM);
    close(s.told_fd);
}

/* There is nothing yet that could be lost: one signal is enough. */
TEST(one_signal_ends_what_begins)
{
    const struct wait w = {.run = pause_for_ever, .begins = true};
    int status;

    struct stuck s = start(&w);
    assert_int_equal(kill(s.pid, SIGTERM), 0);
    assert_int_equal(waitpid(s.pid, &status, 0), s.pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    close(s.told_fd);
}
