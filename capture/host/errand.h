/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls that another process can hold up. Whoever reads a process's memory or mappings waits for its lock of both,
 * which it can keep for seconds: while it forks, or changes many pages, or waits for a CPU in the middle of that. The memory
 * may also be a file whose file system never answers. So the main loop has such a call done by a thread beside, waits for
 * it a short time only, and does without what has not come by then. A thread that is held up ends when its call returns.
 */
#ifndef CAPTURE_HOST_ERRAND_H
#define CAPTURE_HOST_ERRAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The longest wait for one call; for all calls that are late together a tenth of the time, but each has the least. All that
 * is left of that may pass before the thread has a CPU to begin with: that is nothing that a process holds up.
 */
#define ERRAND_WAIT_NS (UINT64_C(50) * 1000000)
#define ERRAND_WAIT_LEAST_NS (UINT64_C(2) * 1000000)
#define ERRAND_STEP_NS (UINT64_C(10) * 1000000)
#define ERRAND_WAITS_SHARE 10
#define ERRAND_WAITS_MAX_NS (UINT64_C(200) * 1000000)
/* Nothing is asked of a process that was late for so long; and of nobody while so many threads are held up. */
#define ERRAND_BAN_NS (UINT64_C(1) * 1000000000)
#define ERRAND_HELD_UP_MAX 4

/* The first member of what a call needs, which is allocated together with it: it may outlast the caller's interest. */
struct errand {
    pid_t pid; /* the process that can hold it up */
    /* In another thread, unless errand_threads_begin() was not called. */
    void (*run)(struct errand *e);
    /* In any thread. */
    void (*destroy)(struct errand *e);
};

/*
 * From here on errands of this thread are run by other ones, which have its present privileges. Those of other threads,
 * and all before this, are run where they are wanted, and take as long as they take.
 */
void errand_threads_begin(void);
/* Ends that, and the thread that waits for work. Those that are held up are left to themselves. */
void errand_threads_end(void);

/* Whether errand_run() would use another thread. Where not, the call may as well be made without an errand. */
bool errand_threads_used(void);
/* Runs an errand. True: it is done, and the caller destroys it. False with errno EBUSY: it is late, and not the caller's any more. */
bool errand_run(struct errand *e);

#endif
