/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that calls process_vm_readv(2). */
#include "capture/host/target_memory.h"

#include <errno.h>
#include <sys/uio.h>

uint64_t target_read_some(pid_t pid, uint64_t address, void *out, uint64_t len_bytes)
{
    struct iovec to = {out, len_bytes}, from = {(void *)(uintptr_t)address, len_bytes};
    ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);

    return n < 0 ? 0 : (uint64_t)n;
}

bool target_read(pid_t pid, uint64_t address, void *out, uint64_t len_bytes)
{
    struct iovec to = {out, len_bytes}, from = {(void *)(uintptr_t)address, len_bytes};
    ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);

    if (n >= 0 && (uint64_t)n != len_bytes)
        errno = EFAULT;
    return n >= 0 && (uint64_t)n == len_bytes;
}

bool target_read_fn(void *pid, uint64_t address, void *out, uint64_t len_bytes)
{
    return target_read(*(const pid_t *)pid, address, out, len_bytes);
}
