/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process as one look at its tasks sees it: pages, each read once.
 *
 * A look at thousands of tasks follows tens of thousands of pointers, and a system call for each would cost far more than
 * what is read. Objects of one size lie side by side in the heap. So whole pages are read, and those that the last look
 * needed are read at once before the next one begins; a page that is missing is read with its neighbours.
 */
#ifndef CAPTURE_ASYNCIO_TASK_MEMORY_H
#define CAPTURE_ASYNCIO_TASK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/err.h"
#include "formats/base/map.h"
#include "formats/base/vec.h"

/* Pages that are kept, in all 32 MiB; beyond that each read is a call of its own. */
#define TASK_MEMORY_PAGES_MAX 8192

#define TASK_MEMORY_CALL_PAGES 256 /* that one call reads; no more than IOV_MAX */

/* Reads `count` ranges of a process one after the other into `out`; returns how many bytes it got: up to the first that fails. */
struct iovec;
typedef uint64_t (*task_memory_fn)(void *ctx, const struct iovec *ranges, uint32_t count, void *out);

#define TASK_MEMORY_WALL_TIMES 4

struct task_page {
    uint64_t address;
    bool used;
};
struct task_memory {
    task_memory_fn fn;      /* set by the caller */
    void *ctx;
    /*
     * Of CPU time of this thread, set by the caller: when it is spent nothing is read that is not here. A thread that is given no
     * CPU is not late, but where TASK_MEMORY_WALL_TIMES as much has passed by the clock.
     */
    uint64_t budget_ns;
    uint64_t began_ns, cpu_began_ns; /* CLOCK_MONOTONIC and CLOCK_THREAD_CPUTIME_ID */
    bool late;              /* something was not read for that */
    bool no_memory;
    VEC(struct task_page) pages; /* by their place in `bytes` */
    struct map index;       /* of a page's address: its place */
    uint8_t *bytes;
    uint32_t bytes_pages;   /* how many there is room for */
    uint8_t *again;         /* pages of one call, to compare them with; NULL: not needed yet */
};
void task_memory_deinit(struct task_memory *m);
/* The budget counts from now on. */
void task_memory_start_clock(struct task_memory *m);
/* Whether the budget is spent: then nothing more is read until the caller gives another one and resets `late`. */
bool task_memory_is_late(struct task_memory *m);
/* Forgets all pages, and reads those at `addresses`, which are sorted. */
void task_memory_begin(struct task_memory *m, const uint64_t *addresses, uint32_t count);
/* A py_read_fn (formats/cpython/code.h). False when a part of it cannot be read, or the time is over. */
bool task_memory_read(void *memory, uint64_t address, void *out, uint64_t len_bytes);
/* Reads all pages again. True when something in them has changed: then they are now as they were read last. */
bool task_memory_changed(struct task_memory *m);
/* Counts the pages that were asked for, and stores the addresses of as many as there is room for, sorted. */
uint32_t task_memory_used(struct task_memory *m, uint64_t *addresses, uint32_t room);

#endif
