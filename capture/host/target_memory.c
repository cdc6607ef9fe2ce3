/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that calls process_vm_readv(2). An errand reads into memory of its own, since it may come too late. */
#include "capture/host/target_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "capture/host/errand.h"

/* So many ranges go into one call of an errand, and so many bytes. */
#define RANGES_MAX 1024
#define BYTES_MAX (ERRAND_BYTES - sizeof(struct memory_call) - RANGES_MAX * sizeof(struct iovec))

/* Behind it the ranges, and behind these what is read. */
struct memory_call {
    pid_t pid;
    uint32_t range_count;
    uint64_t len_bytes;
    ssize_t count;
    int error;
    _Alignas(16) struct iovec ranges[];
};

static ssize_t read_now(pid_t pid, const struct iovec *ranges, uint32_t count, void *out, uint64_t len_bytes)
{
    struct iovec to = {out, len_bytes};

    return process_vm_readv(pid, &to, 1, ranges, count, 0);
}

static void run(void *bytes, size_t size, int *fd)
{
    struct memory_call *m = bytes;

    (void)size, (void)fd;
    m->count = read_now(m->pid, m->ranges, m->range_count, m->ranges + m->range_count, m->len_bytes);
    m->error = errno;
}

/*
 * Where the kernel lets processes read their children only (Yama), the process beside may not what this one may: only then is
 * CAP_SYS_PTRACE missing, and only processes of the own user can be read.
 */
static bool is_for_us(const struct memory_call *m)
{
    return m->count < 0 && m->error == EPERM;
}

static ssize_t read_by_errand(pid_t pid, const struct iovec *ranges, uint32_t count_ranges, void *out, uint64_t len_bytes)
{
    size_t head = sizeof(struct memory_call) + count_ranges * sizeof *ranges, size = head + len_bytes;
    struct memory_call *m = malloc(size);

    if (!m) {
        errno = ENOMEM;
        return -1;
    }
    *m = (struct memory_call){.pid = pid, .range_count = count_ranges, .len_bytes = len_bytes};
    memcpy(m->ranges, ranges, count_ranges * sizeof *ranges);
    ssize_t n = errand_run(pid, run, m, size, NULL) ? m->count : -1;
    int error = n < 0 && !m->error ? errno : m->error;
    bool again = is_for_us(m);
    if (n > 0)
        memcpy(out, (char *)m + head, (size_t)n);
    free(m);
    errno = error;
    return again ? read_now(pid, ranges, count_ranges, out, len_bytes) : n;
}

/* Returns how many bytes were read; -1 with errno. */
static ssize_t read_ranges(pid_t pid, const struct iovec *ranges, uint32_t count, void *out, uint64_t len_bytes)
{
    ssize_t sum = 0;

    if (!errand_is_beside())
        return read_now(pid, ranges, count, out, len_bytes);
    if (count <= RANGES_MAX && len_bytes <= BYTES_MAX)
        return read_by_errand(pid, ranges, count, out, len_bytes);
    for (uint32_t i = 0; i < count; i++) {
        for (uint64_t done = 0; done < ranges[i].iov_len;) {
            uint64_t left = ranges[i].iov_len - done, len = left < BYTES_MAX ? left : BYTES_MAX;
            const struct iovec piece = {(char *)ranges[i].iov_base + done, len};
            ssize_t n = read_by_errand(pid, &piece, 1, (char *)out + sum, len);
            if (n < 0)
                return sum ? sum : -1;
            sum += n;
            done += (uint64_t)n;
            if ((uint64_t)n < len)
                return sum;
        }
    }
    return sum;
}

static ssize_t read_memory(pid_t pid, uint64_t address, void *out, uint64_t len_bytes)
{
    const struct iovec range = {(void *)(uintptr_t)address, len_bytes};

    return read_ranges(pid, &range, 1, out, len_bytes);
}

uint64_t target_read_ranges(pid_t pid, const struct iovec *ranges, uint32_t count, void *out)
{
    uint64_t len_bytes = 0;

    for (uint32_t i = 0; i < count; i++)
        len_bytes += ranges[i].iov_len;
    ssize_t n = read_ranges(pid, ranges, count, out, len_bytes);
    return n < 0 ? 0 : (uint64_t)n;
}

uint64_t target_read_some(pid_t pid, uint64_t address, void *out, uint64_t len_bytes)
{
    ssize_t n = read_memory(pid, address, out, len_bytes);

    return n < 0 ? 0 : (uint64_t)n;
}

bool target_read(pid_t pid, uint64_t address, void *out, uint64_t len_bytes)
{
    ssize_t n = read_memory(pid, address, out, len_bytes);

    if (n >= 0 && (uint64_t)n != len_bytes)
        errno = EFAULT;
    return n >= 0 && (uint64_t)n == len_bytes;
}

bool target_read_fn(void *pid, uint64_t address, void *out, uint64_t len_bytes)
{
    return target_read(*(const pid_t *)pid, address, out, len_bytes);
}
