/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that calls process_vm_readv(2). An errand reads into memory of its own, since it may come too late. */
#include "capture/host/target_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "capture/host/errand.h"

struct memory_errand {
    struct errand errand;
    uint64_t len_bytes;
    ssize_t count;
    int error;
    uint32_t range_count;
    struct iovec *ranges;
    uint8_t bytes[]; /* that were read, and behind them the ranges */
};

static ssize_t read_now(pid_t pid, const struct iovec *ranges, uint32_t count, void *out, uint64_t len_bytes)
{
    struct iovec to = {out, len_bytes};

    return process_vm_readv(pid, &to, 1, ranges, count, 0);
}

static void run(struct errand *e)
{
    struct memory_errand *m = (struct memory_errand *)e;

    m->count = read_now(e->pid, m->ranges, m->range_count, m->bytes, m->len_bytes);
    m->error = errno;
}

static void destroy(struct errand *e)
{
    free((struct memory_errand *)e);
}

static ssize_t read_by_errand(pid_t pid, const struct iovec *ranges, uint32_t count_ranges, void *out, uint64_t len_bytes)
{
    uint64_t room = (len_bytes + 15) & ~UINT64_C(15);
    struct memory_errand *m = malloc(sizeof *m + room + count_ranges * sizeof *ranges);

    if (!m) {
        errno = ENOMEM;
        return -1;
    }
    *m = (struct memory_errand){.errand = {pid, run, destroy}, .len_bytes = len_bytes, .range_count = count_ranges};
    m->ranges = (struct iovec *)(m->bytes + room);
    memcpy(m->ranges, ranges, count_ranges * sizeof *ranges);
    if (!errand_run(&m->errand))
        return -1;
    ssize_t count = m->count;
    if (count > 0)
        memcpy(out, m->bytes, (size_t)count);
    int error = m->error;
    destroy(&m->errand);
    errno = error;
    return count;
}

/* Returns how many bytes were read; -1 with errno. */
static ssize_t read_ranges(pid_t pid, const struct iovec *ranges, uint32_t count, void *out, uint64_t len_bytes)
{
    return errand_threads_used() ? read_by_errand(pid, ranges, count, out, len_bytes)
                                 : read_now(pid, ranges, count, out, len_bytes);
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
