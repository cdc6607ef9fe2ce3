/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that another process can hold up. Whoever reads a process's memory or mappings waits for its lock of both, which it
 * can keep for ever: while it forks, or changes many pages, or waits for a file system that never answers. So such a call is
 * made in a process beside, which is given up when it is late. A thread would not do: one that waits in the kernel without
 * heeding signals keeps its whole process from ending.
 *
 * The process that makes the others is forked from this one by errand_begin(), while that has one thread. Arguments and
 * results lie in memory that the processes share, and a descriptor travels by a socket. One that is late is killed. If the
 * kernel does not let it go it is left behind, also when this process ends.
 */
#ifndef CAPTURE_HOST_ERRAND_H
#define CAPTURE_HOST_ERRAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "capture/host/errand_server.h"
#include "formats/base/err.h"

/*
 * The longest wait for one call of the thread that called errand_begin(); for all its calls that are late together a tenth of
 * the time, but each has the least. All that is left of that may pass before the process beside has a CPU to begin with:
 * that is nothing that a process holds up; and one that has a CPU, or waits for its turn, has so much more.
 */
#define ERRAND_WAIT_NS (UINT64_C(50) * 1000000)
#define ERRAND_WAIT_LEAST_NS (UINT64_C(2) * 1000000)
#define ERRAND_STEP_NS (UINT64_C(10) * 1000000)
#define ERRAND_WAITS_SHARE 10
#define ERRAND_WAITS_MAX_NS (UINT64_C(200) * 1000000)
#define ERRAND_RUNNING_FACTOR 4
/*
 * Other threads have time: for what only the process can hold up, and for what a slow file system can. The latter is longer than
 * a worker's job may take (capture/binary/worker.h), which decides then whose other jobs are not done.
 */
#define ERRAND_WAIT_SHORT_NS (UINT64_C(200) * 1000000)
#define ERRAND_WAIT_LONG_NS (UINT64_C(10) * 1000000000)
/* So long at most the first thread waits for a file. */
#define ERRAND_WAIT_FILE_NS (UINT64_C(2) * 1000000000)
/* What has not come back then is given up: the process holds up who reads it, and is named. */
#define ERRAND_HELD_UP_NS (UINT64_C(300) * 1000000)
/*
 * Nothing is asked of a process that was late for so long, and as long as the call that was late has not come back; of
 * no process of a user of whom so many calls were given up and have not; and of nobody when all ERRAND_HELPERS are late.
 */
#define ERRAND_BAN_NS (UINT64_C(1) * 1000000000)
#define ERRAND_HELD_UP_OF_USER 4

/*
 * From here on errands are run in other processes, where `begin` is called first, to give up privileges, unless it is NULL.
 * Before this, or if it fails, they are run where they are wanted, and take as long as they take. `confine`: they may make
 * few system calls.
 */
struct error *errand_begin(void (*begin)(void), bool confine);
/* Ends that. Those that are held up are left behind. */
void errand_end(void);
bool errand_is_beside(void);

/*
 * Runs an errand, which process `pid` can hold up, in any thread. -pid: by its file systems only, so that it is asked where
 * its memory holds up who reads it; 0: it is not known who. True: it is done, `bytes` are as it left them, and *fd is the
 * descriptor that it made, or as it was. False: `bytes` and *fd are as they were, and errno is EBUSY if it was late. `fd` may
 * be NULL. In other threads than the one that called errand_begin() it is waited for ERRAND_WAIT_SHORT_NS, and by
 * errand_run_long() ERRAND_WAIT_LONG_NS, in that one ERRAND_WAIT_FILE_NS.
 */
bool errand_run(pid_t pid, errand_fn run, void *bytes, size_t size, int *fd);
bool errand_run_long(pid_t pid, errand_fn run, void *bytes, size_t size, int *fd);

/* CPU time that the helpers have taken. */
uint64_t errand_cpu_ns(void);
/* Waits until it is known of all that are late whether they hold us up: ERRAND_HELD_UP_NS at most. */
void errand_settle(void);
/* How many processes held us up. */
uint64_t errand_late_processes(void);
/* Writes a line for each of the last of them, with its name and how many calls were given up. */
void errand_print_late(FILE *out);

#endif
