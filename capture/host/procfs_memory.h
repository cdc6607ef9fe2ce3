/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory a process has, and how many page faults it had, as the kernel counts them. No lock of the process is taken. */
#ifndef CAPTURE_HOST_PROCFS_MEMORY_H
#define CAPTURE_HOST_PROCFS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct procfs_memory {
    uint64_t time_ns;         /* CLOCK_MONOTONIC, when resident memory was read */
    uint64_t anonymous_bytes; /* resident */
    uint64_t file_bytes;      /* resident pages of files */
    uint64_t shared_bytes;    /* resident shared memory */
    uint64_t swap_bytes;      /* anonymous memory that is swapped out */
    uint64_t data_bytes;      /* private writable mappings without stacks, resident or not */
    uint64_t minor_faults, major_faults; /* of all threads that it has had */
    uint64_t image;           /* as in struct procfs_stat: of the program that it runs */
};
/*
 * Reads a process; false when it has ended, or ends, so that it has no memory any more, and when its status file is longer than
 * those of ordinary processes.
 */
bool procfs_memory(pid_t pid, struct procfs_memory *out);
/* Sets what the text of a status file says; false when it says nothing of memory. */
bool procfs_parse_memory(const char *status, struct procfs_memory *out);

#endif
