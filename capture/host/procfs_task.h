/* SPDX-License-Identifier: Apache-2.0 */
/* The small files that /proc has of a process or a thread, each read with one call into room that the caller has. */
#ifndef CAPTURE_HOST_PROCFS_TASK_H
#define CAPTURE_HOST_PROCFS_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads what fits of an open file, from its start, with a NUL behind it; false when it has gone or is empty. */
bool procfs_read_fd(int fd, char *text, size_t cap);
/* The same by name; `dir_fd` as for openat(2). */
bool procfs_read_at(int dir_fd, const char *path, char *text, size_t cap);

/* A stat file, as proc(5) describes it. */
struct procfs_stat {
    char comm[17];
    char state; /* R: it runs or wants to */
    uint32_t parent_tgid;
    uint32_t cpu;         /* where it runs or ran last */
    uint64_t start_ticks; /* since boot, in USER_HZ, in the reader's time namespace */
    uint64_t image;       /* tells images apart: where an exec has put code and stack; 0 where we may not know */
};
/* False when it is not the text of a stat file. */
bool procfs_parse_stat(const char *text, struct procfs_stat *out);
/*
 * The last number in a line of a status file that begins with `name`, such as "NSpid:": the one in the process's own
 * namespace. 0: there is no such line.
 */
uint32_t procfs_last_number(const char *status, const char *name);

#endif
