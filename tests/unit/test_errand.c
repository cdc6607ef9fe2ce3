/* SPDX-License-Identifier: Apache-2.0 */
/* A call that another process holds up is waited for a short time only, as the pipe that none of these writes to shows. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/host/errand.h"
#include "capture/host/procfs.h"
#include "capture/host/procfs_calls.h"
#include "capture/host/procfs_maps.h"
#include "capture/host/target_memory.h"
#include "formats/base/clock.h"

#define LIMIT_NS (5 * NS_PER_S) /* of what takes milliseconds: the machine may be busy */

struct pipe_errand {
    struct errand errand;
    int read_fd, gone_fd; /* gone_fd gets a byte when it is destroyed */
    pthread_t thread;     /* that ran it */
};

static void read_pipe(struct errand *e)
{
    struct pipe_errand *p = (struct pipe_errand *)e;
    char byte;

    p->thread = pthread_self();
    while (p->read_fd >= 0 && read(p->read_fd, &byte, 1) < 0)
        continue;
}

static void destroy(struct errand *e)
{
    struct pipe_errand *p = (struct pipe_errand *)e;

    if (p->gone_fd >= 0)
        assert_int_equal(write(p->gone_fd, "g", 1), 1);
    free(p);
}

/* `read_fd` -1: it ends at once. */
static struct pipe_errand *make(pid_t pid, int read_fd, int gone_fd)
{
    struct pipe_errand *p = calloc(1, sizeof *p);

    assert_non_null(p);
    *p = (struct pipe_errand){.errand = {pid, read_pipe, destroy}, .read_fd = read_fd, .gone_fd = gone_fd};
    return p;
}

/* Whether one that ends at once is done; several times, since a busy machine may be late for it. */
static bool gets_done(pid_t pid)
{
    for (uint64_t end_ns = now_ns() + LIMIT_NS; now_ns() < end_ns;) {
        struct pipe_errand *p = make(pid, -1, -1);
        if (errand_run(&p->errand)) {
            destroy(&p->errand);
            return true;
        }
    }
    return false;
}

TEST(without_threads_it_is_a_call)
{
    struct pipe_errand *p = make(1, -1, -1);

    assert_false(errand_threads_used());
    assert_true(errand_run(&p->errand));
    assert_true(pthread_equal(p->thread, pthread_self()));
    destroy(&p->errand);
}

/* More processes than threads may be held up: each costs a moment, and in the end none is waited for. */
TEST(what_is_held_up_is_given_up)
{
    int ends[2], gone[2];
    char byte;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(pipe2(gone, O_CLOEXEC), 0);
    errand_threads_begin();
    assert_true(errand_threads_used());
    assert_true(gets_done(1));
    uint64_t began_ns = now_ns();
    for (pid_t pid = 2; pid < 100; pid++) {
        assert_false(errand_run(&make(pid, ends[0], gone[1])->errand));
        assert_int_equal(errno, EBUSY);
    }
    uint64_t took_ns = now_ns() - began_ns;
    print_message("98 processes that hold it up: %.1f ms\n", (double)took_ns / NS_PER_MS);
    assert_true(took_ns < LIMIT_NS);
    /* Those that were never begun have been destroyed; the others are when their calls return. */
    for (int i = 0; i < 98 - ERRAND_HELD_UP_MAX; i++)
        assert_int_equal(read(gone[0], &byte, 1), 1);
    assert_int_equal(poll(&(struct pollfd){.fd = gone[0], .events = POLLIN}, 1, 0), 0);
    assert_int_equal(write(ends[1], "1234", ERRAND_HELD_UP_MAX), ERRAND_HELD_UP_MAX);
    for (int i = 0; i < ERRAND_HELD_UP_MAX; i++)
        assert_int_equal(read(gone[0], &byte, 1), 1);
    assert_true(gets_done(1));
    errand_threads_end();
    assert_false(errand_threads_used());
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(gone[i]);
    }
}

/* One process is late; from then on it is not asked, and another is. */
TEST(only_the_late_process_is_banned)
{
    int ends[2], gone[2];
    char byte;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(pipe2(gone, O_CLOEXEC), 0);
    errand_threads_begin();
    assert_false(errand_run(&make(7, ends[0], gone[1])->errand));
    uint64_t late_ns = now_ns();
    struct pipe_errand *again = make(7, -1, -1);
    if (errand_run(&again->errand)) {
        destroy(&again->errand);
        assert_true(now_ns() - late_ns >= ERRAND_BAN_NS / 2);
    }
    assert_true(gets_done(8));
    assert_int_equal(write(ends[1], "1", 1), 1);
    assert_int_equal(read(gone[0], &byte, 1), 1);
    assert_true(gets_done(7));
    errand_threads_end();
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(gone[i]);
    }
}

/* What is read by an errand is what is read without: memory, its end, arguments, mappings. */
TEST(reads_the_same)
{
    long page = sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char in[16] = {0}, plain[256], arguments[256];
    struct procfs_maps maps = {.fd = -1};
    struct procfs_mapping m;
    bool own_code = false;

    assert_ptr_not_equal(memory, MAP_FAILED);
    assert_int_equal(munmap(memory + page, (size_t)page), 0);
    memcpy(memory + page - 8, "a secret", 8);
    uint64_t address = (uint64_t)(uintptr_t)(memory + page - 8);
    size_t len = procfs_arguments(getpid(), plain, sizeof plain);
    errand_threads_begin();
    assert_true(gets_done(1));
    assert_true(target_read(getpid(), address, in, 8));
    assert_memory_equal(in, "a secret", 8);
    assert_int_equal(target_read_some(getpid(), address + 2, in, 16), 6);
    assert_memory_equal(in, "secret", 6);
    assert_false(target_read(getpid(), address, in, 16));
    assert_int_equal(errno, EFAULT);
    assert_int_equal(procfs_arguments(getpid(), arguments, sizeof arguments), len);
    assert_memory_equal(plain, arguments, len);
    OK(procfs_maps_open(getpid(), &maps));
    while (procfs_maps_next(&maps, &m)) {
        uint64_t here = (uint64_t)(uintptr_t)test_reads_the_same;
        own_code |= m.start <= here && here < m.end;
    }
    procfs_maps_close(&maps);
    assert_true(own_code);
    assert_int_equal(procfs_call_open(getpid(), "/proc/self/no such file"), -1);
    assert_int_equal(errno, ENOENT);
    errand_threads_end();
    munmap(memory, (size_t)page);
}
