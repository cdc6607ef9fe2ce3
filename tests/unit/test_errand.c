/* SPDX-License-Identifier: Apache-2.0 */
/* A call that another process holds up is waited for a short time only, as the pipe that nobody writes to shows. */
#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
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

/* Waits for a byte of the pipe that it is given, and says in which process. */
static void read_pipe(void *bytes, size_t size, int *fd)
{
    pid_t *process = bytes;
    char byte;

    (void)size;
    *process = getpid();
    while (*fd >= 0 && read(*fd, &byte, 1) < 0)
        continue;
}

static void make_pipe(void *bytes, size_t size, int *fd)
{
    int ends[2];

    (void)size;
    *(char *)bytes = 'm';
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], bytes, 1), 1);
    close(ends[1]);
    *fd = ends[0];
}

static void crash(void *bytes, size_t size, int *fd)
{
    (void)bytes, (void)size, (void)fd;
    _exit(3);
}

/* Whether one that ends at once is done; several times, since a busy machine may be late for it. Its process, or 0. */
static pid_t gets_done(pid_t pid)
{
    pid_t process = 0;

    for (uint64_t end_ns = now_ns() + LIMIT_NS; now_ns() < end_ns;) {
        if (errand_run(pid, read_pipe, &process, sizeof process, NULL))
            return process;
    }
    return 0;
}

TEST(without_a_beginning_it_is_a_call)
{
    pid_t process = 0;

    assert_false(errand_is_beside());
    assert_true(errand_run(1, read_pipe, &process, sizeof process, NULL));
    assert_int_equal(process, getpid());
}

/* More processes than there are helpers hold it up: each costs a moment, and in the end none is waited for. */
TEST(what_is_held_up_is_given_up)
{
    int ends[2];
    pid_t process = 0;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    OK(errand_begin(NULL, false));
    assert_true(errand_is_beside());
    assert_int_not_equal(gets_done(1), 0);
    assert_int_not_equal(gets_done(1), getpid());
    uint64_t began_ns = now_ns();
    for (pid_t pid = 2; pid < 100; pid++) {
        int fd = ends[0];
        assert_false(errand_run(pid, read_pipe, &process, sizeof process, &fd));
        assert_int_equal(errno, EBUSY);
        assert_int_equal(fd, ends[0]);
        assert_int_equal(process, 0);
    }
    uint64_t took_ns = now_ns() - began_ns;
    print_message("98 processes that hold it up: %.1f ms\n", (double)took_ns / NS_PER_MS);
    assert_true(took_ns < LIMIT_NS);
    assert_true(errand_late_processes() > 0);
    assert_int_not_equal(gets_done(1), 0);
    errand_end();
    assert_false(errand_is_beside());
    for (int i = 0; i < 2; i++)
        close(ends[i]);
}

/* One process is late; for a while it is not asked, and another is. */
TEST(only_the_late_process_is_banned)
{
    int ends[2], fd;
    pid_t process;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    OK(errand_begin(NULL, false));
    fd = ends[0];
    assert_false(errand_run(7, read_pipe, &process, sizeof process, &fd));
    uint64_t late_ns = now_ns();
    if (errand_run(7, read_pipe, &process, sizeof process, NULL))
        assert_true(now_ns() - late_ns >= ERRAND_BAN_NS / 2);
    assert_int_not_equal(gets_done(8), 0);
    assert_int_not_equal(gets_done(7), 0);
    errand_end();
    for (int i = 0; i < 2; i++)
        close(ends[i]);
}

TEST(a_descriptor_comes_back)
{
    char bytes[2] = "x";
    int fd = -1;

    OK(errand_begin(NULL, false));
    assert_int_not_equal(gets_done(1), 0);
    assert_true(errand_run(1, make_pipe, bytes, 1, &fd));
    assert_int_equal(read(fd, bytes + 1, 1), 1);
    assert_int_equal(bytes[0], 'm');
    assert_int_equal(bytes[1], 'm');
    close(fd);
    errand_end();
}

TEST(a_helper_that_ends_is_replaced)
{
    char byte = 0;

    OK(errand_begin(NULL, false));
    assert_int_not_equal(gets_done(1), 0);
    assert_false(errand_run(1, crash, &byte, 1, NULL));
    assert_int_equal(errno, EIO);
    assert_int_not_equal(gets_done(1), 0);
    errand_end();
}

/* What several calls are needed for: the parts are as long as one may be. */
TEST(reads_much_memory)
{
    size_t size = 3 * ERRAND_BYTES + 12345;
    char *memory = malloc(size), *copy = calloc(1, size);

    assert_non_null(memory);
    assert_non_null(copy);
    for (size_t i = 0; i < size; i++)
        memory[i] = (char)(i * 7 + i / 4096);
    OK(errand_begin(NULL, false));
    assert_int_not_equal(gets_done(1), 0);
    assert_int_equal(target_read_some(getpid(), (uintptr_t)memory, copy, size), size);
    assert_memory_equal(memory, copy, size);
    errand_end();
    free(memory);
    free(copy);
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
    OK(errand_begin(NULL, false));
    assert_int_not_equal(gets_done(1), 0);
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
    errand_end();
    munmap(memory, (size_t)page);
}
