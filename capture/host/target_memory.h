/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the memory of another process with process_vm_readv(2). The process keeps running, so memory may change
 * meanwhile. Where errands are in use (errand.h) a process that holds the reader up is not waited for: errno is EBUSY.
 */
#ifndef CAPTURE_HOST_TARGET_MEMORY_H
#define CAPTURE_HOST_TARGET_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads all of it. Otherwise returns false and sets errno: EFAULT when a part is not mapped. */
bool target_read(pid_t pid, uint64_t address, void *out, uint64_t len_bytes);
/* Reads as much of it as is mapped from its beginning on. Returns how much, in bytes; 0: nothing, and errno says why. */
uint64_t target_read_some(pid_t pid, uint64_t address, void *out, uint64_t len_bytes);
/*
 * Reads `count` ranges, at most IOV_MAX, in one call: their bytes one after the other, up to the first that is not mapped.
 * Returns how many bytes; 0: nothing, and errno says why.
 */
struct iovec;
uint64_t target_read_ranges(pid_t pid, const struct iovec *ranges, uint32_t count, void *out);
/* target_read() as a py_read_fn (formats/cpython/code.h); `pid` points to the pid_t. */
bool target_read_fn(void *pid, uint64_t address, void *out, uint64_t len_bytes);

#endif
