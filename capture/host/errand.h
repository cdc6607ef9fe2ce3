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
/* Another thread has time. */
#define ERRAND_WAIT_LONG_NS (UINT64_C(200) * 1000000)
/* What has not come back then is given up: the process holds up who reads it, and is named. */
#define ERRAND_HELD_UP_NS (UINT64_C(300) * 1000000)
/*
 * Nothing is asked of a process that was late for so long, and as long as the call that was late has not come back; of
 * no process of a user of whom so many calls were given up and have not; and of nobody when there are no more.
 */
#define ERRAND_BAN_NS (UINT64_C(1) * 1000000000)
#define ERRAND_HELD_UP_OF_USER 4
#define ERRAND_HELPERS 24

/* The most that one call may take and give. */
#define ERRAND_BYTES ((size_t)1 << 20)

/*
 * What is done: with `bytes`, in which both arguments and results are, and which has no pointers into other memory; and with a
 * descriptor. It gets in *fd one that is closed for it, or -1, and may put one there that the caller shall have.
 */
typedef void (*errand_fn)(void *bytes, size_t size, int *fd);

/*
 * From here on errands are run in other processes, where `begin` is called first, to give up privileges. Before this, or if it
 * fails, they are run where they are wanted, and take as long as they take. `confine`: they may make few system calls.
 */
struct error *errand_begin(void (*begin)(void), bool confine);
/* Ends that. Those that are held up are left behind. */
void errand_end(void);
bool errand_is_beside(void);

/*
 * Runs an errand, which process `pid` can hold up (0: it is not known who), in any thread. True: it is done, `bytes` are as it left them, and *fd is the
 * descriptor that it made, or as it was. False: `bytes` and *fd are as they were, and errno is EBUSY if it was late. `fd`
 * may be NULL.
 */
bool errand_run(pid_t pid, errand_fn run, void *bytes, size_t size, int *fd);

/* CPU time that the helpers have taken. */
uint64_t errand_cpu_ns(void);
/* Waits until it is known of all that are late whether they hold us up: ERRAND_HELD_UP_NS at most. */
void errand_settle(void);
/* How many processes held us up. */
uint64_t errand_late_processes(void);
/* Writes a line for each of the last of them, with its name and how many calls were given up. */
void errand_print_late(FILE *out);

#endif
