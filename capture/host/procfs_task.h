/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the small files of a process or thread in /proc, each with one call, into the caller's buffer. */
#ifndef CAPTURE_HOST_PROCFS_TASK_H
#define CAPTURE_HOST_PROCFS_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads an open file from its start, as much as fits, and adds a NUL. False when the process has ended or the file is
 * empty.
 */
bool procfs_read_fd(int fd, char *text, size_t cap);
/* The same by name; `dir_fd` as for openat(2). */
bool procfs_read_at(int dir_fd, const char *path, char *text, size_t cap);

/* A stat file, as proc(5) describes it. */
struct procfs_stat {
    char comm[17];
    char state; /* R: it is running or runnable */
    uint32_t parent_tgid;
    uint32_t cpu;         /* where it runs or ran last */
    uint64_t minor_faults, major_faults; /* of a process: of all threads that it has had */
    uint64_t waited_ticks; /* of a process: CPU time of its children that it has waited for, and of theirs, in USER_HZ */
    uint64_t start_ticks; /* since boot, in USER_HZ, in the reader's time namespace */
    uint64_t image;       /* differs between program images: made of the addresses of code and stack; 0: the task is ending */
    uint64_t stack_start; /* near the upper end of the first thread's stack; 0: it may not be known */
};
/* Parses the text of a stat file; false when it is malformed. */
bool procfs_parse_stat(const char *text, struct procfs_stat *out);
/* Reads that of a process, or with a `tid` that of one of its threads; false: it is gone, or may not be read. */
bool procfs_stat(pid_t pid, pid_t tid, struct procfs_stat *out);
/*
 * Returns the last number in the line of a status file that begins with `name`. In "NSpid:" that is the pid in the
 * process's own namespace. 0: there is no such line.
 */
uint32_t procfs_last_number(const char *status, const char *name);
/* A process's user ids, in the order of its status file. */
struct procfs_uids {
    uint32_t real, effective, saved, files;
};
/* Reads them from the text of a status file; false when they are not there. */
bool procfs_parse_uids(const char *status, struct procfs_uids *out);
/* Reads a process's groups from that text, that of its files first, at most `max`. Returns how many. */
size_t procfs_parse_groups(const char *status, uint32_t *groups, size_t max);

/* PROCMAP_QUERY of linux/fs.h, which asks about a mapping, since Linux 6.11. */
#define PROCFS_MAP_QUERY _IOWR('f', 17, char[104])

#endif
