/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls on those files of /proc whose process can hold up who reads them (errand.h): its mappings, and its arguments,
 * which are in its memory. Each is as the call that it is named after, with errno EBUSY when the process holds it up.
 */
#ifndef CAPTURE_HOST_PROCFS_CALLS_H
#define CAPTURE_HOST_PROCFS_CALLS_H

#include <sys/stat.h>
#include <sys/types.h>

/* To read. `pid`, here and below: whose file it is. */
int procfs_call_open(pid_t pid, const char *path);
/* Reads until `out` is full, or there is no more. */
ssize_t procfs_call_read(pid_t pid, int fd, void *out, size_t size);
int procfs_call_lstat(pid_t pid, const char *path, struct stat *st);
/* With AT_STATX_DONT_SYNC and AT_NO_AUTOMOUNT: STATX_BASIC_STATS. */
int procfs_call_statx(pid_t pid, const char *path, struct statx *stx);

#endif
