/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a summary, those that ran most first, and how much of the recording each was running. */
#ifndef SYMBOLIZE_SUMMARY_THREADS_H
#define SYMBOLIZE_SUMMARY_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "formats/base/err.h"
#include "formats/base/vec.h"
#include "symbolize/stack/resolve.h"
#include "symbolize/summary/processes.h"
#include "symbolize/summary/summary.h"

struct thread_entry {
    uint32_t pid, tid;
    const char *name;    /* printable */
    const struct process_entry *process;
    uint64_t sample_count;
    uint64_t time_ns, duration_ns; /* as of a process */
};

struct thread_list {
    VEC(struct thread_entry) entries;
};

/* `processes` are those of the same summary, whose texts the list borrows. */
struct error *threads_list(struct summary *s, const struct resolver *r, const struct process_list *processes,
                           struct thread_list *out);
void threads_deinit(struct thread_list *list);
/* Prints the list as a table, `all` of it or its first rows; nothing where each process has one thread. */
struct error *threads_print(struct summary *s, const struct resolver *r, bool all, FILE *out);

#endif
